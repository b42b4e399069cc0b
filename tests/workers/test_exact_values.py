"""Draft, check, publish without noise, sample: every value of the file comes back, exactly and in its own spelling."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import cycle, islice

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from service.intake.table.draft import draft_table
from tests.noiseless import publish, table_of

ROWS = 4_000
STRAYS = 0.03
"""Cells that no row has keep a share of one in 10,000 each, whatever is counted; values of a range lie there."""

LETTERS = ["a", "b", "c"]
WHOLE = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(2**53 - 3, 2**53 + 9),
    st.integers(-(2**53) - 9, -(2**53) + 3),
    st.integers(2**63 - 9, 2**63 - 1),
)
DAYS = st.one_of(st.dates(dt.date(9990, 1, 1)), st.dates(dt.date(2019, 1, 1), dt.date(2024, 12, 31)))
MOMENTS = st.datetimes(dt.datetime(2021, 3, 1), dt.datetime(2021, 4, 30))  # noqa: DTZ001 - text without a zone


def _german(number: Decimal) -> str:
    whole, _, rest = f"{abs(number):,.2f}".replace(",", "_").partition(".")
    return f"{'-' * (number < 0)}{whole.replace('_', '.')},{rest}"


def _of_german(text: str) -> Decimal:
    return Decimal(text.replace(".", "").replace(",", "."))


def _cents(most: int) -> st.SearchStrategy[Decimal]:
    return st.integers(-most, most).map(lambda cents: Decimal(cents).scaleb(-2))


KINDS = {
    "whole": (WHOLE.map(str), int),
    "tiny": (st.integers(1, 9_999).map(lambda n: f"{Decimal(n).scaleb(-15):f}"), Decimal),
    "exponent": (st.integers(1, 9_999).map(lambda n: f"{n}e-12"), Decimal),
    "offset": (st.integers(0, 40).map(lambda n: str(1_700_000_000_000 + n)), int),
    "quarters": (st.integers(0, 400).map(lambda n: str(10**9 + n / 4)), Decimal),
    "digits": (st.integers(1, 10**15 - 1).map(lambda n: f"{Decimal(n).scaleb(-15):f}"), Decimal),
    "day": (DAYS.map(str), dt.date.fromisoformat),
    "local_day": (
        st.dates(dt.date(2019, 1, 1), dt.date(2023, 12, 31)).map(lambda day: f"{day:%d.%m.%Y}"),
        lambda text: dt.datetime.strptime(text, "%d.%m.%Y").date(),  # noqa: DTZ007 - a day
    ),
    "minute": (MOMENTS.map(lambda at: at.replace(second=0, microsecond=0).isoformat()), dt.datetime.fromisoformat),
    "amount": (_cents(10**7).map(_german), _of_german),
    "euros": (_cents(10**4).map(lambda cents: f"{_german(cents)} €"), lambda text: _of_german(text.removesuffix(" €"))),
    "price": (_cents(10**6).map(lambda cents: f"{cents:.2f}"), Decimal),
    "dose": (st.integers(0, 400).map(lambda n: f"{n / 4:g}"), Decimal),
    "counted": (st.integers(-500, 9_999).map(lambda n: f"{n}.0"), Decimal),
    "code": (st.integers(0, 9_999).map(lambda n: f"0{n:04}"), str),
    "postcode": (st.integers(1_000, 99_999).map(lambda n: f"{n:05}"), str),
}
SPELLED = {"local_day", "amount", "euros", "price", "dose", "counted", "code", "postcode"}
"""Of these the text itself is the same."""


def _table(data: st.DataObject) -> dict[str, list[str]]:
    columns = {}
    for kind, (texts, back) in KINDS.items():
        own = data.draw(st.lists(texts, min_size=3, max_size=9, unique_by=back), label=kind)
        columns[kind] = list(islice(cycle(own), ROWS))
    return columns | {"letter": list(islice(cycle(LETTERS), ROWS))}


@pytest.mark.slow
@settings(
    max_examples=5,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),  # an example takes seconds, and says enough as it is
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_every_value_comes_back(tmp_path, data) -> None:
    columns = _table(data)
    path = tmp_path / "table.csv"
    path.write_text(table_of(columns), encoding="utf-8")
    drafted = draft_table(path)
    published = publish(path, drafted.schema)
    said = {finding.column for finding in drafted.findings}
    for kind, (_, back) in KINDS.items():
        field = published.schema.field(kind)
        assert field is not None
        if field.role is not None:
            assert kind in said
            continue
        markers = set(published.schema.missing_values_of(field))
        assert not markers & set(columns[kind]) or kind in said
        wanted = {back(text) for text in columns[kind] if text not in markers}
        got = [back(text) for text in published.columns[kind] if text not in markers]
        assert wanted <= set(got), (kind, field)
        assert sum(value not in wanted for value in got) <= STRAYS * len(got), (kind, field)
        if field.categories is not None:
            assert set(got) == wanted, (kind, field)
        if kind in SPELLED:
            assert {text for text in columns[kind] if text not in markers} <= set(published.columns[kind]), (
                kind,
                field,
            )
