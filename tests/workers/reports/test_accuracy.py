"""Accuracy on held-out units: whole noise on two counts, one row's answer at a time, and bounds that hold."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from service.domain.table_schema import parse_table_schema
from service.releases.report_pages import charged_page
from tests.workers.reports.test_owner_figures import ROWS, SCHEMA, as_file, real_frame
from workers.encoding.table import ABSENT, EncodedTable, encode_table
from workers.mechanism.secure_random import SecureRandom
from workers.methods.choose.classifier import wrong
from workers.reports import accuracy
from workers.reports.accuracy import NoisyAnswers, classifier, figures, noisy_answers
from workers.reports.rows import domain_of

PARSED = parse_table_schema(SCHEMA)
DOMAIN = domain_of(PARSED)
LABEL = DOMAIN.index("rich")


@pytest.fixture(scope="module")
def rows():
    """Income, which tells all, is the same in all of them."""
    table = encode_table(as_file(real_frame()), DOMAIN, units=ROWS)
    codes = table.codes.astype(np.uint16)
    codes[:, DOMAIN.index("income")] = 0
    return replace(table, codes=codes)


@pytest.fixture(scope="module")
def synthetic():
    """Of a generator without error."""
    codes = encode_table(as_file(real_frame(seed=9)), DOMAIN, units=ROWS).codes.astype(np.int64)
    codes[:, DOMAIN.index("income")] = 0
    return codes


def answered(rows, synthetic, noise_multiplier=0.5, seed=1):
    randomness = SecureRandom.from_test_seed(seed)
    return noisy_answers(rows, DOMAIN, "rich", synthetic, noise_multiplier=noise_multiplier, randomness=randomness)


def test_the_classifier_is_that_of_the_library(synthetic):
    """Its weights as whole numbers give its answers."""
    for label in (LABEL, DOMAIN.index("age")):
        codes = synthetic.copy()
        codes[:, DOMAIN.index("age")] //= 8  # several classes, and cells that no row has
        known = np.delete(codes, label, axis=1)
        cells = [range(width) for place, width in enumerate(DOMAIN.widths) if place != label]
        encoder = OneHotEncoder(categories=cells)
        model = LogisticRegression(max_iter=200).fit(encoder.fit_transform(known), codes[:, label])
        missed = wrong(classifier(codes, DOMAIN.widths, label), codes, DOMAIN.widths, label)
        assert (missed == (model.predict(encoder.transform(known)) != codes[:, label])).mean() > 0.999


def test_one_value_in_all_synthetic_rows_is_the_answer(rows, synthetic):
    same = synthetic.copy()
    same[:, LABEL] = 1
    found = answered(rows, same)
    assert found.accuracy == pytest.approx((rows.codes[:, LABEL] == 1).mean(), abs=0.005)


def test_accuracy_is_how_often_it_is_right(rows, synthetic):
    found = answered(rows, synthetic)
    missed = wrong(classifier(synthetic, DOMAIN.widths, LABEL), rows.codes.astype(np.int64), DOMAIN.widths, LABEL)
    assert found.accuracy == pytest.approx(1.0 - missed.mean(), abs=0.003)
    low, high = found.bounds
    assert low < found.accuracy < high
    assert 0.8 < found.accuracy < 0.97


def test_both_counts_have_the_noise_of_the_event(rows, synthetic):
    found = [answered(rows, synthetic[:500], 40.0, seed) for seed in range(60)]
    for count in ("right", "wrong"):
        assert 20.0 < np.std([getattr(one, count) for one in found]) < 65.0
    assert found[0].noise_std == pytest.approx(40.0, rel=0.01)
    spread = np.std([one.accuracy for one in found])
    assert spread == pytest.approx(found[0].accuracy_noise_std, rel=0.4)


def test_rows_beyond_the_most_of_a_unit_and_null_records_do_not_count(rows, synthetic):
    starts = np.arange(0, ROWS + 1, 10)
    by_unit = EncodedTable(rows.codes, len(starts) - 1, starts, 4)
    few = answered(by_unit, synthetic)
    assert few.rows is None
    assert few.right + few.wrong == pytest.approx(4 * (len(starts) - 1), abs=30)
    assert few.noise_std == pytest.approx(2.0, rel=0.3)  # four rows, each half a row of noise
    codes = rows.codes.copy()
    codes[:1_000] = ABSENT
    null = answered(replace(by_unit, codes=codes), synthetic)
    assert null.right + null.wrong == pytest.approx(4 * (len(starts) - 1) * (ROWS - 1_000) / ROWS, abs=30)


def seen(truth, random, *, units, most, noise):
    """What is released where all rows of a unit have the same answer: the most that they can vary."""
    lengths = np.ones(units, dtype=np.int64) if most == 1 else random.integers(1, most + 1, units)
    right = random.random(units) < truth
    counts = np.array([lengths[right].sum(), lengths[~right].sum()])
    noisy = np.rint(counts + random.normal(0.0, noise * most, 2)).astype(int)
    return NoisyAnswers(int(noisy[0]), int(noisy[1]), noise * most, units if most == 1 else None, most)


@pytest.mark.parametrize("truth", [0.5, 0.85, 0.99])
@pytest.mark.parametrize(
    ("units", "most", "noise"), [(40, 1, 5.0), (500, 1, 20.0), (5_000, 1, 2.0), (300, 5, 6.0), (60, 3, 20.0)]
)
def test_bounds_hold_19_times_in_20(truth, units, most, noise):
    random = np.random.default_rng(units)
    bounds = np.array([seen(truth, random, units=units, most=most, noise=noise).bounds for _ in range(400)])
    held = ((bounds[:, 0] <= truth) & (truth <= bounds[:, 1])).mean()
    assert held >= 0.925  # of 400 a rate of 0.95 gives less than this once in a hundred
    assert (bounds >= 0.0).all()
    assert (bounds <= 1.0).all()


def test_bounds_are_not_wider_than_needed():
    random = np.random.default_rng(1)
    bounds = np.array([seen(0.85, random, units=2_000, most=1, noise=3.0).bounds for _ in range(400)])
    assert ((bounds[:, 0] <= 0.85) & (bounds[:, 1] >= 0.85)).mean() < 0.98
    assert np.mean(bounds[:, 1] - bounds[:, 0]) == pytest.approx(
        2 * 1.96 * np.sqrt(0.85 * 0.15 / 2_000 + 4.5 / 2_000**2), rel=0.05
    )


@pytest.mark.parametrize(("right", "wrongly"), [(-50, 20), (0, 0), (130, -40), (100, -100), (-5, -5)])
@pytest.mark.parametrize("rows_told", [100, None])
def test_noise_that_hides_all_is_no_error(right, wrongly, rows_told):
    found = NoisyAnswers(right, wrongly, 40.0, rows_told, 1)
    low, high = found.bounds
    assert 0.0 <= low <= found.accuracy <= high <= 1.0 or rows_told is None
    assert 0.0 <= low <= high <= 1.0
    assert 0.0 <= found.accuracy <= 1.0


def test_it_reads_synthetic_rows_before_private_ones(synthetic, monkeypatch):
    """What is fitted never depends on a held-out row."""
    given = []
    monkeypatch.setattr(
        accuracy, "classifier", lambda codes, widths, label: given.append(codes) or classifier(codes, widths, label)
    )
    empty = EncodedTable(np.zeros((0, 4), dtype=np.uint16), 1, np.array([0, 0]), 3)
    found = answered(empty, synthetic)
    assert given[0] is not synthetic
    assert (given[0] == synthetic[:20_000]).all()
    assert abs(found.right) < 40


def test_the_page_shows_it(rows, synthetic):
    found = figures(answered(rows, synthetic), target="rich", held_out_units=ROWS, most_frequent=(True, 0.52, 0.01))
    report = {
        "says": "x",
        "one_way": {"tables": 1, "tv": 0.1, "low": 0.0, "high": 0.2, "noise_hides_it": True, "noisy_tv": 0.1},
        "two_way": None,
    }
    report |= {
        "columns": [],
        "pairs": [],
        "accept": {"accuracy": 0.8, "by": "bound"},
        "accepted": True,
        "accuracy": found,
    }
    page = charged_page(report, "x")
    assert "3,000 held-out units: rich predicted right" in page
    assert "accuracy at least 0.8" in page
    assert "always the most frequent value" in page
