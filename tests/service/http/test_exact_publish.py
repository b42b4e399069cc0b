"""Upload, order, worker, sample through the real service, without noise: what comes out are the values that went in."""

import csv
import datetime as dt
import io
import json
import uuid
from decimal import Decimal

import polars as pl
import pytest

from service.intake.table.draft import draft_table
from tests.noiseless import NoNoise, table_of
from tests.reservations import claim
from workers import run

pytestmark = pytest.mark.slow

ROWS = 4_000
ORDER = {"method": "marginals", "epsilon": 1.0, "pairs": "none", "tree_precision_share": 0.01, "device": "cpu"}
TEXTS = {
    "whole": ["9007199254740993", "9007199254740995", "-9007199254740993"],
    "tiny": ["0.000000000001", "0.0000000000035", "2e-12"],
    "offset": ["1000000000.25", "1000000000.5", "1000000003.75"],
    "digits": ["0.1234567890123", "0.1234567890124", "0.9999999999999"],
    "amount": ["1.234,56", "-7,50", "1.000.000,00"],
    "until": ["9999-12-31", "9998-06-05", "9997-02-03"],
    "visit": ["17.04.2023", "01.12.2022", "31.01.2021"],
    "code": ["0311", "0007", "9999"],
}
TYPED = {
    "whole": pl.Series([2**53 + 1, 2**53 + 3, 2**63 - 1]),
    "tiny": pl.Series([1e-12, 3.5e-12, 2e-12]),
    "exact": pl.Series([Decimal("1.10"), Decimal("-2.25"), Decimal("1000000.00")], dtype=pl.Decimal(12, 2)),
    "until": pl.Series([dt.date(9999, 12, 31), dt.date(9998, 6, 5), dt.date(9997, 2, 3)]),
    "at": pl.Series([1_700_000_000_000_000_000, 1_700_000_060_000_000_000, 1_700_003_600_123_456_789]).cast(
        pl.Datetime("ns")
    ),
}


@pytest.fixture
def publish(api, context, signing_key, monkeypatch):  # noqa: ARG001 - what signs certificates
    monkeypatch.setattr(run, "SecureRandom", lambda: NoNoise(is_private=True))

    def one(path):
        schema = json.dumps(draft_table(path).schema)
        made = api.upload(path.read_bytes(), schema=schema, accept_draft="true", budget='{"epsilon": 20}')
        assert made.status_code == 201, made.text
        ordered = api.order(made.json()["id"], {**ORDER, "epsilon": 10.0})
        assert ordered.status_code == 202, ordered.text
        with context.transaction() as session:
            lease = claim(session, uuid.UUID(ordered.json()["id"]))
        run.Attempt(context, lease).run()
        return ordered.json()["id"], made.json()["notices"]

    return one


def _sample(api, release, format_):
    query = {"rows": ROWS, "format": format_, "seed": 1}
    reply = api.http.get(f"/v1/releases/{release}/sample", params=query, headers=api.reader)
    assert reply.status_code == 200, reply.text
    return reply.content


def test_values_of_a_csv_come_back_exactly(api, publish, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(table_of({name: [texts[row % 3] for row in range(ROWS)] for name, texts in TEXTS.items()}))
    release, notices = publish(path)
    assert notices == []
    header, *rows = csv.reader(io.StringIO(_sample(api, release, "csv").decode(), newline=""))
    assert header == list(TEXTS)
    for name, got in zip(header, zip(*rows, strict=True), strict=True):
        read = Decimal if name in {"tiny", "offset", "digits"} else str
        wanted = {read(text) for text in TEXTS[name]}
        strays = [text for text in got if read(text) not in wanted]
        assert wanted <= {read(text) for text in got}, name
        assert len(strays) <= (ROWS * 0.03 if name in {"until", "visit"} else 0), (name, strays[:3])


def test_values_of_a_parquet_file_come_back_exactly(api, publish, tmp_path):
    path = tmp_path / "table.parquet"
    pl.DataFrame({name: pl.concat([some] * (ROWS // 3)) for name, some in TYPED.items()}).write_parquet(path)
    release, notices = publish(path)
    assert notices == [f"Column 'at': {ROWS // 3} cells are no whole second, which synthetic ones are."]
    got = pl.read_parquet(io.BytesIO(_sample(api, release, "parquet")))
    for name in ("whole", "tiny", "exact", "until"):
        wanted = set(TYPED[name].cast(pl.Float64).to_list()) if name == "exact" else set(TYPED[name].to_list())
        if name == "whole" and got["whole"].dtype == pl.String:
            wanted = set(map(str, wanted))
        assert wanted <= set(got[name].to_list()), (name, got[name].unique().to_list()[:5])
    assert got["at"].min() >= dt.datetime(2023, 1, 1)  # noqa: DTZ001
