"""RAPPOR: prices, unbiased estimates, and a permanent response that many reports do not average away."""

from __future__ import annotations

import ast
import math
import statistics
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import imprimatur.local
from imprimatur.local import InvalidReport, Rappor, rappor
from imprimatur.local.coins import WHOLE, PermanentCoins, new_secret
from imprimatur.local.estimates import bits_of, least_squares, non_negative_lasso


def test_the_prices_of_the_paper() -> None:
    settings = Rappor(bits=128, hashes=2, f=0.5, p=0.5, q=0.75)
    assert settings.epsilon_for_ever == pytest.approx(4.39, abs=0.005)
    assert settings.epsilon_of_one_report == pytest.approx(1.07, abs=0.005)
    assert "One report: ε = 1.074. All reports of one value, for ever: ε = 4.394." in str(settings)


def epsilon_of(settings: Rappor, reports: int) -> float:
    """Of so many reports of one value, exactly: a bit's permanent coin, then a binomial number of ones."""
    half, p, q = (Fraction(part, WHOLE) for part in settings.coins)
    ratios = []
    for ones in range(reports + 1):
        high, low = (chance**ones * (1 - chance) ** (reports - ones) for chance in (q, p))
        ratios.append(((1 - half) * high + half * low) / (half * high + (1 - half) * low))
    up, down = max(ratios), min(ratios)
    return settings.hashes * (math.log(up) - math.log(down))


@pytest.mark.parametrize("knobs", [{}, {"f": 0.25}, {"f": 0.75, "p": 0.1, "q": 0.9, "hashes": 1}])
def test_however_many_reports_reveal_no_more_than_is_said(knobs: dict[str, float]) -> None:
    settings = Rappor(**knobs)  # type: ignore[arg-type]
    assert epsilon_of(settings, 1) == pytest.approx(settings.epsilon_of_one_report)
    spent = [epsilon_of(settings, reports) for reports in (1, 2, 5, 20, 100)]
    assert spent == sorted(spent)
    assert spent[-1] <= settings.epsilon_for_ever * (1.0 + 1e-12)  # of logarithms that are rounded
    assert spent[-1] > 0.95 * settings.epsilon_for_ever


def test_both_prices_are_rounded_up() -> None:
    """In floats, half of them were rounded down, those of nearly equal chances by a hundred millionth."""
    digits = Context(prec=100)
    for f, p, q, hashes in product((0.1, 0.5, 0.999), (0.0, 0.3, 0.5), (0.5 + 4e-6, 0.75, 1.0), (1, 2, 3)):
        settings = Rappor(f=f, p=p, q=q, hashes=hashes)
        half, (one, zero) = settings.coins[0], settings.chances
        of_one = one * (1 - zero) / (zero * (1 - one))
        for said, ratio, times in (
            (settings.epsilon_for_ever, Fraction(WHOLE - half, half), 2 * hashes),
            (settings.epsilon_of_one_report, of_one, hashes),
        ):
            exact = digits.multiply(digits.ln(digits.divide(ratio.numerator, ratio.denominator)), times)
            assert exact <= Decimal(said) <= exact * (1 + Decimal("3e-16"))


def test_one_value_has_one_permanent_response_for_ever() -> None:
    settings = Rappor(bits=64)
    device = settings.reporter()
    permanent = device.permanent("rain")
    assert {device.permanent("rain") for _ in range(20)} == {permanent}
    assert settings.reporter(device.secret, device.cohort).permanent("rain") == permanent
    assert len({settings.reporter().permanent("rain") for _ in range(20)}) == 20
    assert device.permanent("snow") != permanent


@pytest.mark.parametrize("changed", [{"hashes": 3}, {"f": 0.25}, {"bits": 65}, {"question": "yesterday"}])
def test_a_permanent_response_under_other_settings_is_of_other_coins(changed: dict[str, Any]) -> None:
    """From the same coins, only bits that the filter has would differ with another number of hashes, and its bits would show with another f.

    To another question, equal answers would have equal responses.
    """
    settings = {"bits": 64, "hashes": 2, "f": 0.5}
    first, second = Rappor(**settings), Rappor(**{**settings, **changed})
    filters = {*first.filter_bits("rain", 0), *second.filter_bits("rain", 0)}
    differing, devices = 0, 200
    for _ in range(devices):
        device = first.reporter(cohort=0)
        one, two = device.permanent("rain"), second.reporter(device.secret, 0).permanent("rain")
        differing += sum(one[place] != two[place] for place in range(64) if place not in filters)
    p, q = (each.coins[0] / WHOLE for each in (first, second))
    wanted, trials = p * (1.0 - q) + q * (1.0 - p), devices * (64 - len(filters & {*range(64)}))
    assert abs(differing / trials - wanted) < 6.0 * math.sqrt(wanted * (1.0 - wanted) / trials)


def test_a_device_that_keeps_its_secret_stays_in_its_cohort() -> None:
    """In another cohort the permanent response is another one, whose ε is added."""
    settings = Rappor(bits=64, cohorts=8)
    devices = [settings.reporter() for _ in range(400)]
    for device in devices:
        again = settings.reporter(device.secret)
        assert again.cohort == device.cohort
        assert again.permanent("rain") == device.permanent("rain")
    shares = [sum(device.cohort == cohort for device in devices) for cohort in range(8)]
    assert all(abs(share - 50) < 6.0 * math.sqrt(50) for share in shares)
    assert settings.reporter(devices[0].secret, 3).cohort == 3


def test_many_reports_tell_the_permanent_response_and_not_the_filter() -> None:
    settings = Rappor(bits=32)
    device, many = settings.reporter(), 3_000
    counted = settings.count(device.report("rain") for _ in range(many))
    means = [ones / many for ones in counted.ones[0]]
    for mean, bit in zip(means, device.permanent("rain"), strict=True):
        assert mean == pytest.approx(0.75 if bit else 0.5, abs=0.05)


def test_a_report_is_made_of_the_permanent_response_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tossed: list[int] = []

    def fresh(part: int) -> bool:
        tossed.append(part)
        return False

    monkeypatch.setattr(rappor, "fresh", fresh)
    settings = Rappor(bits=16)
    device = settings.reporter()
    device.report("rain")
    _, p, q = settings.coins
    assert tossed == [q if bit else p for bit in device.permanent("rain")]


def test_permanent_bits_turn_as_often_as_f_says() -> None:
    settings = Rappor(bits=16, f=0.5)
    devices = [settings.reporter().permanent("rain") for _ in range(2_000)]
    own = set(settings.filter_bits("rain", 0))
    assert len(own) == 2
    for place in range(16):
        share = statistics.fmean(each[place] for each in devices)
        assert share == pytest.approx(0.75 if place in own else 0.25, abs=0.045)


def test_true_bits_are_unbiased_with_the_variance_of_the_formula() -> None:
    settings, people, trials = Rappor(bits=16), 25, 600
    own = settings.filter_bits("rain", 0)
    found = [
        settings.count(settings.reporter().report("rain") for _ in range(people)).true_bits()[0] for _ in range(trials)
    ]
    one, zero = (float(chance) for chance in settings.chances)
    formula = people * zero * (1.0 - zero) / (one - zero) ** 2
    rare = [bits[place] for bits in found for place in range(16) if place not in own]
    assert abs(statistics.fmean(rare)) < 4.5 * math.sqrt(formula / len(rare))
    assert statistics.variance(rare) == pytest.approx(formula, rel=0.065)
    held = [bits[place] for bits in found for place in own]
    assert abs(statistics.fmean(held) - people) < 4.5 * math.sqrt(formula * 1.1 / len(held))


def test_least_squares_of_candidates_are_unbiased_and_as_far_off_as_said() -> None:
    settings, people, trials = Rappor(bits=16, f=0.25, p=0.25, cohorts=2), 60, 120
    names = ["rain", "snow", "sun"]
    found = [
        settings.estimate((settings.reporter().report("rain" if i % 3 else "snow") for i in range(people)), names)
        for _ in range(trials)
    ]
    for name, true in (("rain", 40.0), ("snow", 20.0), ("sun", 0.0)):
        counts = [each.counts[name] for each in found]
        std = statistics.fmean(each.std[name] for each in found)
        assert abs(statistics.fmean(counts) - true) < 4.5 * std / math.sqrt(trials)
        assert statistics.stdev(counts) == pytest.approx(std, rel=0.35)


def test_weights_of_many_candidates_solve_the_normal_equations_and_each_hears_of_its_own_candidate_alone() -> None:
    settings = Rappor(bits=64, cohorts=3)
    columns = [
        {
            cohort * 64 + bit: 0.2 + 0.1 * cohort
            for cohort in range(3)
            for bit in settings.filter_bits(f"{each}", cohort)
        }
        for each in range(60)
    ]
    numbers = [math.sin(entry) * 1_000.0 for entry in range(3 * 64)]
    weights, maps = least_squares(columns, numbers)
    left = list(numbers)
    for weight, column in zip(weights, columns, strict=True):
        for entry, value in column.items():
            left[entry] -= weight * value
    for place, column in enumerate(columns):
        assert math.fsum(value * left[entry] for entry, value in column.items()) == pytest.approx(
            0.0, abs=1e-9 * 1_000.0
        )
        heard = [math.fsum(value * each.get(entry, 0.0) for entry, value in column.items()) for each in maps]
        assert heard == pytest.approx([float(other == place) for other in range(60)], abs=1e-12)


def test_the_lasso_drops_what_is_not_reported() -> None:
    settings = Rappor(bits=64, f=0.25, p=0.05, q=0.95)
    names = [f"word {place}" for place in range(12)]
    reports = [settings.reporter().report(names[i % 2]) for i in range(1_500)]
    found = settings.estimate(reports, names, "lasso")
    assert found.counts["word 0"] == pytest.approx(750, abs=200)
    assert found.counts["word 1"] == pytest.approx(750, abs=200)
    assert sum(count == 0.0 for count in found.counts.values()) >= 8
    assert found.std == {}


def test_candidates_that_set_the_same_bits_are_refused_by_least_squares() -> None:
    with pytest.raises(ValueError, match="cannot be told apart"):
        least_squares([{0: 1.0}, {0: 1.0}], [1.0])
    assert non_negative_lasso([{0: 1.0}, {1: 2.0}], [3.0, -1.0], 0.5) == [2.5, 0.0]


@pytest.mark.parametrize(
    "report",
    [
        {"cohort": 1, "bits": "0000"},
        {"cohort": True, "bits": "0000"},
        {"cohort": 0, "bits": "000"},
        {"cohort": 0, "bits": "00g0"},
        {"cohort": 0, "bits": 7},
        {"bits": "0000"},
        {"cohort": 0, "bits": "0x1f"},
        "0000",
        None,
    ],
)
def test_a_malformed_report_is_not_counted(report: Any) -> None:
    settings = Rappor(bits=16)
    with pytest.raises(InvalidReport):
        settings.count([report])
    assert not settings.is_report(report)
    assert settings.count(filter(settings.is_report, [report, settings.reporter().report("rain")])).reports == [1]
    assert bits_of("0001", 16) == 1


@pytest.mark.parametrize(
    "knobs",
    [
        {"f": 0.0},
        {"f": 1.0},
        {"p": 0.8},
        {"q": math.nan},
        {"p": 1e-30, "q": 2e-30},
        {"f": 1.0 - 1e-16},
        {"p": 0.5, "q": math.nextafter(0.5, 1.0)},
        {"hashes": 129},
        {"cohorts": 0},
        {"bits": 0},
    ],
)
def test_settings_that_promise_nothing_are_refused(knobs: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"f lies|p < q|hashes|cohorts"):
        Rappor(**knobs)  # type: ignore[arg-type]


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        PermanentCoins(b"short", "a", "b")
    assert PermanentCoins(new_secret(), "a", "b").toss(WHOLE)
    assert not PermanentCoins(new_secret(), "a", "b").toss(0)


def test_coins_are_those_of_the_operating_system() -> None:
    """No module of reports imports a generator that can be predicted."""
    for path in Path(imprimatur.local.__path__[0]).glob("*.py"):
        names = {
            name.split(".")[0]
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        assert not names & {"random", "numpy", "service", "workers"}, path
