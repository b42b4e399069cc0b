"""The figures of the owner's report, on rows whose answers are known."""

import io
import json

import numpy as np
import polars as pl
import pytest
import torch

from service.domain.table_schema import parse_table_schema
from service.methods.report_noise import pairs_of
from service.releases.report_pages import owner_page
from tests.tiny_mixtures import mixture_files
from workers.reports.distances import same_rows, total_variation, value_distance
from workers.reports.owner import SETS, Made, owner_report, rows_that_break
from workers.reports.rows import domain_of, halves_of, modelled, read_owned, rows_of, unsigned_bundle
from workers.reports.subgroups import Answers, group_scores, worst_of

SCHEMA = {
    "fields": [
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"], "required": True}},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}},
        {"name": "income", "type": "number", "constraints": {"minimum": 0, "maximum": 100}},
        {"name": "rich", "type": "boolean", "constraints": {"required": True}},
    ],
    "target": "rich",
    "protected": ["sex"],
}
ROWS = 3_000


def real_frame(seed=0, rows=ROWS):
    random = np.random.default_rng(seed)
    age = random.integers(0, 100, rows)
    income = np.clip(0.8 * age + random.normal(0, 10, rows), 0, 100)
    sex = [("f", "m")[code] for code in random.integers(0, 2, rows)]
    return pl.DataFrame({"sex": sex, "age": age, "income": income, "rich": income > 50})


def as_file(frame):
    file = io.BytesIO()
    frame.write_parquet(file)
    file.seek(0)
    return file


@pytest.fixture(scope="module")
def bundle():
    """Of a generator that knows nothing of the rows."""
    width = sum(column.size for column in domain_of(parse_table_schema(SCHEMA)).columns)
    config, network = mixture_files(SCHEMA, torch.zeros(1, 8, width), numeric_bins=32)
    return unsigned_bundle({"config.json": json.dumps(config).encode(), "generator.onnx": network})


@pytest.fixture(scope="module")
def report(bundle):
    return owner_report(parse_table_schema(SCHEMA), as_file(real_frame()), bundle, Made(1.0, 1e-5, ROWS, None), seed=1)


def test_a_generator_that_knows_nothing_is_told_from_fresh_rows(report):
    summary = report["summary"]
    assert set(summary) == set(SETS)
    for figure in ("one_way_tv", "two_way_tv", "value_distance"):
        assert summary["synthetic"][figure] > 2 * summary["other_half"][figure]
    assert summary["independent"]["two_way_tv"] > 2 * summary["other_half"]["two_way_tv"]
    assert summary["independent"]["one_way_tv"] == pytest.approx(summary["other_half"]["one_way_tv"])
    assert summary["synthetic"]["correlation_difference"] > 0.8  # age and income go together in the real rows alone
    assert summary["synthetic"]["same_values"] == 0.0
    assert report["rows_that_break_the_declaration"] == 0
    assert report["rows"] == {"real": ROWS, "synthetic": ROWS}


def test_classifiers_are_told_apart_and_so_are_groups(report):
    by = {(one["learner"], one["trained_on"]): one for one in report["learning"]}
    for learner in ("logistic_regression", "boosting"):
        assert by[learner, "other_half"]["accuracy"] > 0.98
        assert by[learner, "synthetic"]["accuracy"] < 0.7
        groups = by[learner, "synthetic"]["protected"]["sex"]
        assert set(groups["groups"]) == {"f", "m"}
        assert groups["worst_group"] == worst_of(groups["groups"])


def test_the_page_holds_all_it_needs_and_says_that_it_is_not_private(report):
    page = owner_page(report, "an id <b>")
    assert page.count("Do not share.") == 2
    assert "&lt;b&gt;" in page
    assert "<script" not in page
    assert "http" not in page
    assert "age × income" in page
    assert "No report could be made" in owner_page({"failed": "MemoryError"}, "x")


def test_a_copy_of_the_rows_is_seen():
    frame = real_frame().filter(pl.col("income").is_between(1, 99))  # at the ends of the range values repeat
    rows = rows_of(frame, domain_of(parse_table_schema(SCHEMA)))
    assert same_rows(rows.numbers, rows.numbers) == 1.0
    assert same_rows(rows.numbers[:10], rows.numbers[10:]) == 0.0


def test_distances_by_hand():
    one, other = np.array([[0], [0], [1], [1]]), np.array([[0], [0], [0], [1]])
    assert total_variation(one, other, (2,)) == 0.25
    assert value_distance(np.array([0.0, 2.0]), np.array([1.0, 3.0, np.nan]), 10.0) == pytest.approx(0.1)
    assert value_distance(np.array([np.nan]), np.array([1.0]), 10.0) is None
    assert pairs_of(["a", "b", "c"], "c", 2) == [(0, 2), (1, 2)]


def test_groups_by_hand():
    """In `a` all 40 answers are right, in `b` half; `c` is too small to be spoken of."""
    chances = np.array([[0.0, 1.0]] * 40 + [[1.0, 0.0]] * 40 + [[1.0, 0.0]] * 3)
    truth = np.array([1] * 40 + [0] * 20 + [1] * 20 + [1] * 3)
    found = group_scores(Answers(chances, truth), np.array([0] * 40 + [1] * 40 + [2] * 3), ["a", "b", "c"])
    assert set(found["groups"]) == {"a", "b"}
    assert found["groups"]["a"]["accuracy"] == 1.0
    assert found["groups"]["b"]["accuracy"] == 0.5
    assert found["groups"]["b"]["true_positive_rate"] == 0.0
    assert found["demographic_parity_difference"] == 1.0
    assert worst_of(found["groups"]) == "b"


def test_all_rows_of_a_unit_are_in_one_half():
    frame = real_frame(rows=900).with_columns(pl.Series("__unit__", np.repeat(np.arange(300), 3)))
    frame = frame.with_columns((pl.col("__unit__") / 3).alias("income"))  # which unit a row is of
    domain = domain_of(parse_table_schema(SCHEMA))
    halves = halves_of(*read_owned(as_file(frame)), domain, most=900, random=np.random.default_rng(0))
    seen = [set(half.numbers[:, 2]) for half in halves]
    assert not seen[0] & seen[1]
    assert len(halves[0]) == len(halves[1]) == 450


def test_broken_relations_are_counted():
    schema = parse_table_schema(
        {
            "fields": [
                {"name": "low", "type": "integer", "constraints": {"minimum": 0, "maximum": 9, "required": True}},
                {"name": "high", "type": "integer", "constraints": {"minimum": 0, "maximum": 9, "required": True}},
                {
                    "name": "town",
                    "type": "string",
                    "hierarchy": {"north": ["a", "b"], "south": ["c"]},
                    "constraints": {"required": True},
                },
            ],
            "relations": ["low <= high"],
            "exclusions": [{"town": ["south"], "low": {"minimum": 5, "maximum": 9}}],
        }
    )
    frame = pl.DataFrame({"low": [1, 3, 6], "high": [2, 1, 7], "town": ["a", "b", "c"]})
    assert rows_that_break(frame, schema) == 2
    assert modelled(frame, schema)["town"].to_list() == ["north", "north", "south"]


@pytest.mark.parametrize(
    ("protected", "why"),
    [(["nobody"], "no field"), (["age"], "categories"), (["rich"], "target"), (["sex", "sex"], "twice")],
)
def test_protected_fields_are_checked(protected, why):
    with pytest.raises(Exception, match=why):
        parse_table_schema({**SCHEMA, "protected": protected})
