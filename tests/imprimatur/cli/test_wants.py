"""`--want` as it is typed, and what a quote looks like for a person."""

from __future__ import annotations

import json
import shlex

import pytest
import typer

from imprimatur.cli.order_options import build_order, read_want, said_again
from imprimatur.cli.publishing import _print_facts
from imprimatur.cli.releases import _after, _begins
from imprimatur.releases import ReleaseOperations
from imprimatur.replies import Budget, Quote

COUNTS = {
    "marginals": 3,
    "count_std": {"smallest": 1.0, "median": 2.0, "largest": 3.0},
    "off_by": 3.92,
    "smallest_group": 7,
    "total_variation": {"expected": 0.02, "low": 0.01, "high": 0.03},
}
QUOTE = {
    "order": {"method": "marginals"},
    "price": {"epsilon": 2.0, "delta": 1e-7, "shares": {"simple": 1, "renyi": 2}},
    "steps": 1,
    "first_noise_multiplier": 1.0,
    "last_noise_multiplier": 1.0,
    "fits": True,
    "remaining": {"simple": 5, "renyi": 5},
}


def test_what_is_wanted_is_numbers_by_name():
    assert read_want("group=200, within=0.1") == {"group": 200, "within": 0.1}
    assert read_want("within=.1") == {"within": 0.1}
    assert read_want(None) is None
    order = build_order(None, None, method="auto", want=read_want("two_way_tv=0.05"))
    assert order == {"method": "auto", "want": {"two_way_tv": 0.05}}


@pytest.mark.parametrize("typed", ["group", "group=", "group=many", "group=true", "group=[1]", ""])
def test_anything_else_is_refused(typed):
    with pytest.raises(typer.BadParameter, match="is not NAME=NUMBER"):
        read_want(typed)


def test_what_a_quote_says_to_do_next_is_the_order_that_it_was_of():
    asked = {"method": "idpgan", "condition_on": "my column", "purpose": None, "steps": 300, "public_start": None}
    said = said_again('{"report": {}}', ["noise_decay.kind=periodic"], **asked)
    assert shlex.split(said) == [
        *("--order", '{"report": {}}', "--method", "idpgan", "--condition-on", "my column", "--steps", "300"),
        *("--set", "noise_decay.kind=periodic"),
    ]
    assert said_again(None, None, method="auto", steps=None) == ""


CHOICE = {
    "method": "choose",
    "epsilon": 1,
    "candidates": [{"method": "idpgan"}, *({"method": "idpgan", "public_dataset": "older"} for _ in range(2))],
}


def test_a_quote_of_a_choice_says_which_candidates_begin_from_public_rows():
    said = _begins(CHOICE)["begins from"]
    assert said == "public rows of older (of candidates: 1, 2): no price, and no protection for them"
    said = _begins({"method": "idpgan", "public_dataset": "older"})["begins from"]
    assert said == "public rows of older: no price, and no protection for them"
    assert _begins({"method": "choose", "candidates": [{"method": "marginals"}]}) == {}


@pytest.mark.parametrize("wrong", [None, "older", ["older"], 7])
def test_what_are_no_candidates_is_left_to_the_service_to_refuse(wrong):
    assert _begins({"method": "choose", "candidates": wrong}) == {}


def test_a_dataset_is_named_in_candidates_as_everywhere():
    asked = []

    class Known:
        def _dataset_id(self, named):
            yield from ()
            asked.append(named)
            return f"the id of {named}"

    def sent(order):
        steps = ReleaseOperations._with_ids(Known(), order)
        with pytest.raises(StopIteration) as done:
            next(steps)
        return done.value.value

    found = sent(CHOICE)
    assert [each.get("public_dataset") for each in found["candidates"]] == [None, *["the id of older"] * 2]
    assert asked == ["older"], "asked once"
    assert CHOICE["candidates"][1]["public_dataset"] == "older", "what the caller holds stays"
    assert sent({"epsilon": 1, "public_dataset": "older"})["public_dataset"] == "the id of older"
    assert sent({"epsilon": 1, "candidates": "older"}) == {"epsilon": 1, "candidates": "older"}


def test_a_choice_names_public_rows_in_its_candidates_alone():
    for typed in ({"method": "choose"}, {"method": "auto", "order": json.dumps(CHOICE)}):
        given = {"method": typed["method"], "public_dataset": "older", "epsilon": 1.0}
        with pytest.raises(typer.BadParameter, match="name the dataset in each candidate"):
            build_order(typed.get("order"), None, **given)
    with pytest.raises(typer.BadParameter, match="name the dataset in each candidate"):
        build_order(json.dumps(CHOICE), ["public_dataset=older"], method="auto")
    assert build_order(json.dumps(CHOICE), None, method="auto") == CHOICE


@pytest.mark.parametrize(
    ("method", "state", "failure", "command"),
    [
        ("marginals", "published", None, "imprimatur sample abcdefgh -n 1000 -o rows.csv"),
        ("queries", "published", None, "imprimatur answers abcdefgh"),
        ("declaration", "published", None, "imprimatur answers abcdefgh"),
        ("marginals", "failed", "not_accepted", "imprimatur report abcdefgh --charged -o report.html"),
    ],
)
def test_what_to_do_with_a_release_fits_what_it_holds(method, state, failure, command):
    found = {"id": "abcdefghi", "state": state, "failure": failure, "order": {"method": method}}
    assert _after(found) == command


@pytest.mark.parametrize("unit", ["image", "part of an image", "all images of a unit"])
def test_images_are_not_drawn_into_a_table(unit):
    found = {"id": "abcdefghi", "state": "published", "failure": None, "order": {"method": "idpgan"}}
    drawn = _after(found | {"certificate": {"contribution_bound": {"unit": unit}}})
    assert drawn == "imprimatur sample abcdefgh -n 1000 -o images.zip"
    assert _after(found | {"certificate": {"contribution_bound": {"unit": "row"}}}).endswith("rows.csv")


@pytest.mark.parametrize(
    ("output", "more"), [("out.zip", "more.zip"), ("out.jsonl", "more.csv"), ("a/rows", "more.csv")]
)
def test_more_images_go_into_a_file_of_images(capsys, output, more):
    facts = {
        "output": output,
        "epsilon": 1.0,
        "delta": 1e-6,
        "largest_next_epsilon": 0.0,
        "release_id": "a" * 32,
        "rows": 9,
    }
    _print_facts(facts, as_json=False, is_running=True)
    assert f"-n 9 -o {more} (free of charge)" in " ".join("".join(capsys.readouterr()).split())


def test_an_order_without_epsilon_or_want_is_still_refused():
    with pytest.raises(typer.BadParameter, match="give --epsilon, such as 1, or --share"):
        build_order(None, None, method="auto", want=None)


def test_a_quote_is_typed_and_says_sentences_first():
    forecast = {"sentences": ["All are measured.", "Off by 4."], "pairs": "all", "one_way": COUNTS, "two_way": None}
    wanted = {"epsilon": 2.0, "largest": 5.0, "says": "About ε = 2 is the least that gives that."}
    quote = Quote.of({**QUOTE, "forecast": forecast, "wanted": wanted, "warnings": ["little"]})
    assert quote.forecast.one_way.count_std.median == 2.0
    assert quote.forecast.one_way.total_variation.high == 0.03
    assert quote.forecast.two_way is None
    assert str(quote).splitlines() == [
        "About ε = 2 is the least that gives that.",
        "All are measured.",
        "Off by 4.",
        "Warning: little",
        "ε = 2, δ = 1e-07; it fits.",
    ]


def test_a_quote_of_an_older_service_has_no_forecast():
    quote = Quote.of(QUOTE)
    assert (quote.forecast, quote.wanted, quote.warnings) == (None, None, ())
    assert str(quote) == "ε = 2, δ = 1e-07; it fits."


def test_a_budget_says_what_its_two_accounts_are():
    accounts = {
        "simple": {"posted": 700_000_000, "pending": 50_000_000, "remaining": 250_000_000},
        "renyi": {"posted": 270_000_000, "pending": 0, "remaining": 730_000_000, "order": 7},
    }
    budget = Budget.of(
        {
            "epsilon": 3.0,
            "delta": 1e-6,
            "accounts": accounts,
            "remaining_share": 0.73,
            "epsilon_spent": 1.0,
            "largest_next_epsilon": 1.2,
        }
    )
    assert "basic 75 % used, Rényi 27 %: an order needs room in one." in str(budget)
