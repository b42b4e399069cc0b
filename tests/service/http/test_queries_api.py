"""Questions over HTTP: quoted, charged, answered by a worker, and answered again from that at no cost."""

import pytest

from service.base.caching import BoundedCache
from service.methods.queries.order import Question
from service.queries import conditions, earlier
from service.samples.table import written
from tests.service.http.test_datasets_api import _assert_problem
from workers import lease as leases
from workers.run import Attempt


@pytest.fixture
def ask(api, dataset_id):
    return lambda body, key=None: api.http.post(
        f"/v1/datasets/{dataset_id}/queries", json=body, headers=key or api.analyst
    )


@pytest.fixture
def answered(api, context, ask, signing_key):  # noqa: ARG001 - what signs certificates
    def wait(body):
        reply = ask(body)
        assert reply.status_code == 202, reply.text
        release = reply.json()["release"]
        while str((lease := leases.claim_next(context.settings)).release_id) != release["id"]:
            pass  # an earlier order, which stays claimed
        Attempt(context, lease).run()
        return api.http.get(release["links"]["answers"], headers=api.reader).json()["answers"]

    return wait


def spent(api, dataset_id):
    return api.http.get(f"/v1/datasets/{dataset_id}/budget", headers=api.reader).json()["accounts"]


def test_a_question_is_quoted_charged_and_answered(api, dataset_id, ask, answered):
    question = {"kind": "count", "where": "city=Rome", "epsilon": 1.0}
    before = spent(api, dataset_id)
    quote = ask({**question, "dry_run": True})
    assert quote.status_code == 200, quote.text
    assert quote.json()["price"]["epsilon"] == 1.0
    assert quote.json()["fits"]
    assert quote.json()["forecast"] == ["The count is off by at most about 3, 19 times in 20."]
    assert quote.json()["questions"][0]["state"] == "quoted"
    assert spent(api, dataset_id) == before
    (answer,) = answered(question)
    assert answer["interval"][0] <= answer["value"] <= answer["interval"][1]
    assert answer["question"]["where"] == [{"column": "city", "values": ["Rome"]}]
    assert answer["key"] == quote.json()["questions"][0]["key"]
    assert spent(api, dataset_id) != before


def test_a_question_that_was_asked_before_costs_nothing(api, dataset_id, ask, answered):
    (first,) = answered({"kind": "count", "where": "city in [Rome, Oslo]", "epsilon": 0.5})
    paid = spent(api, dataset_id)
    again = ask({"kind": "count", "where": {"city": ["Oslo", "Rome"]}, "epsilon": 0.4})
    assert again.status_code == 200, again.text
    (question,) = again.json()["questions"]
    assert (question["state"], question["answer"]) == ("answered", first)
    assert (again.json()["price"], again.json()["release"]) == (None, None)
    assert spent(api, dataset_id) == paid
    dearer = ask({"kind": "count", "where": "city in [Rome, Oslo]", "epsilon": 0.9})
    assert dearer.status_code == 202
    assert dearer.json()["questions"][0]["state"] == "ordered"
    waiting = ask({"kind": "count", "where": "city in [Rome, Oslo]", "epsilon": 0.9})
    assert (waiting.status_code, waiting.json()["questions"][0]["state"]) == (200, "waiting")
    assert waiting.json()["questions"][0]["release_id"] == dearer.json()["release"]["id"]


def test_a_question_at_the_rest_is_answered_again_once_nothing_is_left(api, dataset_id, ask, answered):
    """The best answer there is, not the first."""
    answered({"kind": "count", "epsilon": 0.1})
    rest = {"kind": "count", "share": "rest"}
    (best,) = answered(rest)
    for noise in ("gaussian", "geometric"):
        for city in ("Rome", "Oslo", "Bonn"):  # what the other account has left
            ask({"kind": "count", "where": f"city={city}", "noise": noise, "share": "rest"})
    paid = spent(api, dataset_id)
    other = ask({"kind": "count", "where": "age>=65", "share": "rest"})
    assert other.status_code == 422
    assert "nothing is left" in other.json()["detail"]
    again = ask(rest)
    assert again.status_code == 200, again.text
    (question,) = again.json()["questions"]
    assert (question["state"], question["answer"], again.json()["price"]) == ("answered", best, None)
    both = ask({"questions": [{"kind": "count"}, {"kind": "count", "where": "age>=65"}], "share": "rest"})
    assert both.status_code == 422
    assert spent(api, dataset_id) == paid


def test_of_a_batch_only_what_is_new_is_paid(ask, answered):
    count, histogram = {"kind": "count"}, {"kind": "histogram", "column": "city", "weight": 3.0}
    (first,) = answered({**count, "epsilon": 0.5})
    reply = ask({"questions": [histogram, count], "epsilon": 1.0})
    assert reply.status_code == 202, reply.text
    assert reply.json()["price"]["epsilon"] == pytest.approx(0.75)
    new, known = reply.json()["questions"]
    assert (new["state"], new["place"], known["answer"]) == ("ordered", 0, first)


def test_answers_are_not_given_to_others_and_other_questions_are_not_the_same(api, ask, answered):
    answered({"kind": "count", "where": "city=Rome", "epsilon": 0.5})
    for other in ({"where": "city=Oslo"}, {}, {"where": "city=Rome", "noise": "gaussian"}):
        assert (
            ask({"kind": "count", "epsilon": 0.5, "dry_run": True, **other}).json()["questions"][0]["state"] == "quoted"
        )
    _assert_problem(ask({"kind": "count", "epsilon": 0.1}, api.stranger), 404, "not_found")
    _assert_problem(ask({"kind": "count", "epsilon": 0.1}, api.reader), 403, "forbidden")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"kind": "count", "where": "citty=Rome", "epsilon": 1.0}, "citty"),
        ({"kind": "count", "where": "city=nowhere", "epsilon": 1.0}, "nowhere"),
        ({"kind": "mean", "column": "city", "epsilon": 1.0}, "has declared values, not a range"),
        ({"kind": "counts", "epsilon": 1.0}, "questions.0"),
        ({"kind": "count", "where": 7, "epsilon": 1.0}, "questions.0.where"),
        ({"questions": [], "epsilon": 1.0}, "questions"),
        ({"questions": [{"kind": "count"}], "column": "x", "epsilon": 1.0}, "column: with `questions`"),
        ({"kind": "count"}, "exactly one of epsilon and share"),
        ([], "a request is a JSON object"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_reserved(api, dataset_id, ask, body, sentence):
    before = spent(api, dataset_id)
    refused = ask(body)
    assert refused.status_code == 422, refused.text
    assert sentence in refused.json()["detail"]
    assert spent(api, dataset_id) == before


def test_the_last_question_of_a_budget_is_refused(ask):
    assert ask({"kind": "count", "epsilon": 2.9}).status_code == 202
    _assert_problem(ask({"kind": "histogram", "column": "city", "epsilon": 2.9}), 409, "budget_exhausted")


def test_each_question_is_named_once_and_no_more_is_read_once_all_were_found(ask, dataset_id, api, monkeypatch):
    """Not once for each of the others: a hundred questions with conditions held a thread for minutes."""
    named, read = [], []
    name, parse = Question.key.fget, earlier.parse_resolved_order
    monkeypatch.setattr(Question, "key", property(lambda question: named.append(question) or name(question)))
    monkeypatch.setattr(earlier, "parse_resolved_order", lambda document: read.append(document) or parse(document))
    questions = [{"kind": "count", "where": [{"column": "age", "minimum": age}]} for age in range(20)]
    for _ in range(2):
        ordered = api.order(dataset_id, {"method": "queries", "questions": questions, "epsilon": 0.2})
        assert ordered.status_code == 202, ordered.text
    body = {"questions": questions, "epsilon": 0.1, "dry_run": True}
    named.clear()
    assert {each["state"] for each in ask(body).json()["questions"]} == {"waiting"}
    assert (len(named), len(read)) == (3 * len(questions), 1)  # asked, of the first release, and of the reply
    named.clear()
    read.clear()
    assert {each["state"] for each in ask({**body, "epsilon": 0.3}).json()["questions"]} == {"quoted"}
    assert (len(named), len(read)) == (3 * len(questions), 1)  # of the second release; the first is remembered
    read.clear()
    monkeypatch.setattr(earlier, "_GIVEN", BoundedCache(0))
    monkeypatch.setattr(earlier, "MOST_READ_BYTES", 1)
    ask({**body, "epsilon": 0.3})
    assert len(read) == 1  # no more than a request may
    read.clear()
    refused = ask({"questions": questions, "epsilon": 0.3})
    assert (refused.status_code, len(read)) == (
        429,
        1,
    )  # what was not read may have been asked: nothing is charged for it
    assert "what was asked before costs nothing: ask again" in refused.json()["detail"]


def test_the_declaration_is_prepared_once_for_all_questions_of_a_request(ask, monkeypatch):
    made, real = [], written.modelled_columns
    monkeypatch.setattr(written, "modelled_columns", lambda config: made.append(1) or real(config))
    questions = [{"kind": "count", "where": f"age>={age}"} for age in range(20)]
    assert ask({"questions": questions, "epsilon": 0.1, "dry_run": True}).status_code == 200
    assert len(made) == 1
    long = ask({"kind": "count", "where": ["age>=1" + " " * 4_000], "epsilon": 0.1, "dry_run": True})
    assert long.status_code == 422
    assert "at most 4000 characters" in long.json()["detail"]
    many = [{"kind": "count", "where": {"age": {"minimum": 30, ">=": 30, "<": 40, "maximum": 39}}}] * 40
    monkeypatch.setattr(conditions, "MOST_OF_A_REQUEST", 159)
    refused = ask({"questions": many, "epsilon": 0.1, "dry_run": True})
    assert refused.status_code == 422
    assert "more than 159 conditions in all questions" in refused.json()["detail"]
