"""Columns as hospitals, banks and statistics offices export them: published without noise, they come out in the spelling that they came in."""

from __future__ import annotations

import datetime as dt
import re

import pytest

from service.intake.table.draft import draft_table
from tests.noiseless import publish, table_of

ROWS = 900
START = dt.datetime(2019, 3, 1, 7, 5)  # noqa: DTZ001 - text without a zone


def _at(row: int) -> dt.datetime:
    return START + dt.timedelta(hours=37 * row)


COLUMNS = {
    "net": lambda row: f"{row % 389}.{row * 7 % 100:02}",
    "pandas float": lambda row: f"{row % 57}.0" if row % 5 else "",
    "whole without a point": lambda row: f"{row % 400 / 4:g}",
    "weights": lambda row: f"{row * 7919 % 1_000_003 / 1e6:.6f}",
    "percent": lambda row: f"{row % 997 / 10:.1f} %".replace(".", ","),
    "Swiss": lambda row: f"{1_000 + row * 37 % 9_000:,}.{row % 20 * 5:02}".replace(",", "\u2019"),
    "francs": lambda row: f"CHF {200 + row % 389}.{row % 20 * 5:02}",
    "French": lambda row: f"{1_000 + row * 37 % 9_000:,},{row % 100:02}\u00a0€".replace(",", "\u202f", 1),
    "accounts": lambda row: f"({row * 7 % 3_000:,}.50)" if row % 3 else f"{row * 7 % 3_000:,}.25",
    "zloty": lambda row: f"{1 + row % 9} {row % 900 + 100},{row % 100:02} zł",
    "yen": lambda row: f"¥{1_000 + row * 37 % 9_000:,}",
    "Stata day": lambda row: f"{_at(row):%d%b%Y}".lower(),
    "Oracle day": lambda row: f"{_at(row):%d-%b-%y}".upper(),
    "Oracle moment": lambda row: f"{_at(row):%d-%b-%y %I.%M.%S.000000 %p}".upper(),
    "HL7 moment": lambda row: f"{_at(row):%Y%m%d%H%M%S}",
    "Japanese day": lambda row: f"{_at(row):%Y年%m月%d日}",
    "US day": lambda row: f"{_at(row):%m/%d/%Y}",
    "quarter": lambda row: f"{2010 + row % 9}-Q{1 + row % 4}",
    "age group": lambda row: ["18-24", "25-44", ">65"][row % 3],
    "fraction": lambda row: ["6/6", "6/9", "20/20"][row % 3],
    "ICD": lambda row: ["I10", "E11.9", "I25.10"][row % 3],
    "postcode": lambda row: ["01067", "10115"][row % 2],
    "J/N": lambda row: "JN"[row % 2],
    "oui/non": lambda row: ["oui", "non", ""][row % 3],
    "WAHR": lambda row: ["WAHR", "FALSCH"][row % 2],
    "only yes": lambda row: ["x", ""][row % 2],
    "Excel text": lambda row: f'="00{row % 3}"',
    "answer": lambda row: ["yes,\nreally", 'no "way"'][row % 2],
}
"""Of a row, the cell."""


def _form(text: str) -> str:
    """Digits, capitals and other letters as one of each; so many digits behind a point as there are."""
    text = re.sub(r"[0-9]+(?![0-9])", lambda found: "9" * len(found[0]) if found.start() else "9", text)
    return re.sub(r"[^\W\d_A-ZÀ-Þ]+", "a", re.sub(r"[A-ZÀ-Þ]+", "A", text))


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    path = tmp_path_factory.mktemp("exports") / "t.csv"
    path.write_text(table_of({name: [cell(row) for row in range(ROWS)] for name, cell in COLUMNS.items()}), "utf-8")
    drafted = draft_table(path)
    assert not [finding for finding in drafted.findings if finding.what.startswith("left out")]
    return publish(path, drafted.schema, rows=ROWS)


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_come_out_in_their_spelling(published, name):
    real = {COLUMNS[name](row) for row in range(ROWS)}
    forms = {_form(text) for text in real}
    own = published.columns[name]
    strange = {text for text in own if _form(text) not in forms}
    assert not strange, (sorted(strange)[:5], published.schema.field(name))
    assert len(set(own)) > 1
    if published.schema.field(name).categories is not None:
        assert set(own) <= real
