"""Histograms and pairs of drawn columns: what is counted, and in which words its bars are labelled."""

import datetime as dt

import numpy as np
import pytest

from service.pages import synthetic
from service.pages.synthetic import Series, histograms, links
from tests.tiny_generators import tiny_sampler

YEAR = {"minimum": "2023-01-01", "maximum": "2023-12-31", "required": True}
FIELDS = [
    {"name": "day", "type": "date", "format": "%d.%m.%Y", "constraints": YEAR},
    {"name": "iso", "type": "date", "constraints": YEAR},
    {
        "name": "moment",
        "type": "datetime",
        "format": "%d.%m.%Y %H:%M",
        "timezone": "Europe/Berlin",
        "constraints": {"minimum": "2023-03-01T00:00:00", "maximum": "2023-03-11T00:00:00", "required": True},
    },
    {
        "name": "cost",
        "type": "number",
        "decimals": 2,
        "decimalChar": ",",
        "groupChar": ".",
        "trailingZeros": True,
        "constraints": {"minimum": 0, "maximum": 5000},
    },
    {"name": "visits", "type": "integer", "constraints": {"minimum": 0, "maximum": 487, "required": True}},
    {"name": "plain", "type": "number", "constraints": {"minimum": 0, "maximum": 5000000, "required": True}},
    {
        "name": "paid",
        "type": "boolean",
        "trueValues": ["Ja"],
        "falseValues": ["Nein"],
        "constraints": {"required": True},
    },
    {"name": "rank", "type": "number", "decimalChar": ",", "constraints": {"enum": [0.5, 10, 2], "required": True}},
    {"name": "code", "type": "string", "constraints": {"enum": ["20230417", "b"], "required": True}},
]


@pytest.fixture(scope="module")
def columns():
    """Of a generator whose every bin is as likely as the others."""
    sampler = tiny_sampler({"fields": FIELDS}, bias=[0.0] * sum(each.size for each in _modelled()))
    chunks = list(sampler.draws(2_000, seed=1))
    joined = [np.ma.concatenate(parts) for parts in zip(*chunks, strict=True)]
    return [synthetic.series(column, drawn) for column, drawn in zip(sampler.columns, joined, strict=True)]


def _modelled():
    from tests.tiny_generators import domain_of

    return domain_of({"fields": FIELDS}).columns


def named(columns, *names):
    return [each for each in columns if each.name in names]


def test_days_have_bars_of_days_in_the_declared_spelling(columns):
    day, iso = histograms(named(columns, "day", "iso"))
    for found, pattern in ((day, "%d.%m.%Y"), (iso, "%Y-%m-%d")):
        begins = [dt.datetime.strptime(label, pattern).date() for label in found.labels]  # noqa: DTZ007 - a day
        assert len(begins) == synthetic.BINS
        assert begins == sorted(begins)
        assert {each.year for each in begins} == {2023}
        assert sum(found.counts) == 2_000


def test_moments_are_counted_by_the_day_of_the_declared_zone(columns):
    (moment,) = histograms(named(columns, "moment"))
    assert moment.labels == [f"2023-03-{day:02}" for day in range(1, len(moment.labels) + 1)]
    assert len(moment.labels) in {10, 11}
    assert sum(moment.counts) == 2_000


def test_bars_of_numbers_are_labelled_as_the_numbers_are_spelled(columns):
    cost, plain = histograms(named(columns, "cost", "plain"))
    assert cost.labels[-1] == "–"
    assert all("," in label and "." in label for label in cost.labels[5:-1]), cost.labels
    assert not any("e+" in label or "," in label for label in plain.labels)
    (visits,) = histograms(named(columns, "visits"))
    assert not any("." in label for label in visits.labels)


def test_bars_of_whole_numbers_hold_equally_many_of_them():
    values = [18 + i % 80 for i in range(800)]
    whole = Series("age", [*values, None], lambda value: f"{value}", lambda value: f"{value:.4g}", are_whole=True)
    (found,) = histograms([whole])
    assert found.labels[:2] == ["18 – 21", "22 – 25"]
    assert found.labels[-2:] == ["94 – 97", "–"]
    assert found.counts == [40] * 20 + [1]


def test_categories_are_labelled_as_they_are_spelled(columns):
    paid, rank, code = histograms(named(columns, "paid", "rank", "code"))
    assert set(paid.labels) == {"Ja", "Nein"}
    assert rank.labels == ["0,5", "2", "10"]
    assert set(code.labels) == {"20230417", "b"}


def series(name, values, *, are_numbers=False):
    return Series(name, values, str, str if are_numbers else None)


def test_links_are_those_of_made_up_columns():
    rng = np.random.default_rng(0)
    first, other = rng.integers(0, 4, 2_000).tolist(), rng.integers(0, 4, 2_000).tolist()
    found = links(
        [
            series("a", first, are_numbers=True),
            series("same", first, are_numbers=True),
            series("other", other, are_numbers=True),
            series("text", ["xy"[a % 2] for a in first]),
            series("gone", [None] * 2_000),
        ]
    )
    assert found.values[0][1] == 1.0
    assert found.values[0][2] < 0.06
    assert found.values[0][3] > 0.99
    assert found.values[0][4] == 0.0


def test_days_go_together_with_what_grows_with_them():
    days = list(range(19_000, 21_000))
    found = links([Series("day", days, str, str, are_days=True), series("half", [day < 20_000 for day in days])])
    assert found.values[0][1] > 0.99


def test_missing_cells_and_rare_values_have_bars_of_their_own():
    numbers, texts = histograms(
        [
            series("n", [None if i % 10 == 0 else i * 0.1 for i in range(300)], are_numbers=True),
            series("c", [f"v{i % 30}" for i in range(300)]),
        ]
    )
    assert (numbers.labels[-1], numbers.counts[-1], sum(numbers.counts)) == ("–", 30, 300)
    assert (texts.labels[-1], texts.counts[-1], len(texts.labels)) == ("…", 100, synthetic.MOST_BARS + 1)
