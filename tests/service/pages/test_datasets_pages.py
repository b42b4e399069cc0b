"""Lists of datasets, one dataset, and its budget in words."""

import re
import uuid
from types import SimpleNamespace

import pytest

from service.datasets.schemas import Accounts, BudgetReply, RenyiAccount, SimpleAccount
from service.datasets.service import BudgetLeft
from service.pages import datasets as pages_of_datasets
from service.pages.budget import gauge
from service.privacy.filters import NANO

ORDER = {"method": "marginals", "epsilon": 1.0, "pairs": "none"}


def balance(simple_left, renyi_left, *, largest=1.0):
    def account(left, **more):
        return {"posted": NANO - left, "pending": 0, "remaining": left, **more}

    accounts = Accounts(
        simple=SimpleAccount(**account(simple_left)), renyi=RenyiAccount(**account(renyi_left, order=8))
    )
    share = max(simple_left, renyi_left) / NANO
    return BudgetReply(
        epsilon=3.0,
        delta=1e-6,
        accounts=accounts,
        remaining_share=share,
        epsilon_spent=0.1,
        largest_next_epsilon=largest,
    )


def release(state="published", simple=NANO // 4, renyi=NANO // 10):
    order = {"method": "marginals"}
    return SimpleNamespace(state=state, simple_cost=simple, renyi_cost=renyi, price={"epsilon": 0.75}, order_=order)


def test_releases_that_still_fit_are_counted_in_the_account_with_more_room():
    assert gauge(balance(NANO, NANO), []).like_the_last is None
    assert gauge(balance(NANO, NANO), [release()]).like_the_last == 10
    assert gauge(balance(NANO // 2, 0), [release()]).like_the_last == 2
    assert gauge(balance(0, 0, largest=0.0), [release()]).is_empty


@pytest.mark.parametrize(
    ("fits", "said"), [(1.04543, 1.04), (0.0355683, 0.0355), (0.8999999999999999, 0.9), (1.5, 1.5), (0, 0)]
)
def test_what_is_said_to_fit_is_never_rounded_up(fits, said):
    assert gauge(balance(NANO, NANO, largest=fits), []).largest_next_epsilon == said


def test_what_buys_next_to_nothing_is_not_counted_in_releases(api, browser_of, dataset_id, monkeypatch):
    assert gauge(balance(0, NANO // 2_000, largest=0.01), [release(renyi=1)]).is_nearly_empty
    assert not gauge(balance(0, NANO // 500, largest=0.1), [release()]).is_nearly_empty
    reply = balance(0, NANO // 2_000, largest=0.01)
    monkeypatch.setattr(pages_of_datasets, "gauge", lambda _, releases: gauge(reply, releases))
    page = browser_of(api.reader).get(f"/datasets/{dataset_id}").text
    assert "as good as used up: one more release of at most ε = 0.01" in page


def test_a_release_that_was_given_back_is_no_measure():
    assert gauge(balance(NANO, NANO), [release("voided", 1, 1), release()]).like_the_last == 10


def test_an_owner_s_first_look(browser_of, api):
    page = browser_of(api.owner).get("/")
    assert "no dataset yet" in page.text


def test_a_dataset_says_what_is_left_in_words_first(api, browser_of, dataset_id):
    browser = browser_of(api.reader)
    listed = browser.get("/datasets").text
    assert "people" in listed
    assert "<small>a release of at most ε = 3</small>" in listed
    fresh = browser.get(f"/datasets/{dataset_id}").text
    assert "One more release of at most ε = 3." in fresh
    assert fresh.index("One more release") < fresh.index("100 % of (ε, δ)")
    assert api.order(dataset_id, ORDER).status_code == 202
    used = browser.get(f"/datasets/{dataset_id}").text
    assert "more releases like the newest one (ε = 1)" in used
    assert "marginals" in used
    (largest,) = re.findall(r"or one of at most ε = ([\d.]+)\.\s", used)
    assert float(largest) < 3
    assert f"<small>a release of at most ε = {largest}</small>" in browser.get("/datasets").text


def test_a_list_says_in_short_what_hardly_anything_is_left_of(api, browser_of, dataset_id, monkeypatch):
    browser = browser_of(api.reader)
    for share, largest, said in ((0.0005, 0.01, "as good as used up"), (0.0, 0.001, "used up")):
        left = {uuid.UUID(dataset_id): BudgetLeft(share, largest)}
        monkeypatch.setattr(pages_of_datasets.datasets, "budgets_left", lambda *_, left=left: left)
        assert f"<small>{said}</small>" in browser.get("/datasets").text


def test_a_name_is_never_markup(api, browser_of):
    name = "<script>alert(1)</script>"
    reply = api.upload(name=name)
    assert reply.status_code == 201
    for path in ("/datasets", f"/datasets/{reply.json()['id']}"):
        page = browser_of(api.owner).get(path).text
        assert name not in page
        assert "&lt;script&gt;" in page


def test_another_tenant_s_dataset_is_not_there(api, browser_of, dataset_id):
    stranger = browser_of(api.stranger)
    missing = stranger.get(f"/datasets/{uuid.uuid4()}")
    other = stranger.get(f"/datasets/{dataset_id}")
    assert (other.status_code, other.text) == (404, missing.text.replace(missing.url.path, other.url.path))


def test_a_hundred_datasets_take_pages_and_few_statements(api, browser_of, monkeypatch):
    monkeypatch.setattr("service.pages.datasets.DATASETS_OF_A_PAGE", 2)
    for number in range(3):
        rows = "".join(
            f"{(7 * n + number) % 90},{n + number},Rome,true,19{50 + n % 50}-01-0{number + 1}\n" for n in range(60)
        )
        table = f"age,income,city,smoker,born\n{rows}"
        assert api.upload(table, name=f"table {number}").status_code == 201
    browser = browser_of(api.owner)
    first = browser.get("/datasets").text
    assert "table 2" in first
    assert "table 0" not in first
    older = first.split('href="/datasets?before=')[1].split('"')[0]
    assert "table 0" in browser.get(f"/datasets?before={older}").text
