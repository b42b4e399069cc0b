"""Optimised unary encoding: unbiased, as far off as the formula says, and no more is told by saying it again."""

from __future__ import annotations

import math
import statistics
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product

import pytest

from imprimatur.local import OUE, InvalidReport
from imprimatur.local.coins import WHOLE, at_least
from imprimatur.local.estimates import add_bits, bits_of

VALUES = [f"value {place}" for place in range(16)]
PEOPLE, TRIALS = 40, 1_000
PAIRS = 2_000


def test_estimates_are_unbiased_and_their_variance_is_that_of_the_formula() -> None:
    epsilon = 1.0
    oue = OUE(VALUES, epsilon)
    device = oue.reporter(memoised=False)
    found = [oue.estimate(device.report(VALUES[i % 4]) for i in range(PEOPLE)).counts for _ in range(TRIALS)]
    formula = PEOPLE * 4.0 * math.exp(epsilon) / (math.exp(epsilon) - 1.0) ** 2
    rare = [each[value] for each in found for value in VALUES[4:]]
    assert abs(statistics.fmean(rare)) < 4.0 * math.sqrt(formula / len(rare))
    assert statistics.variance(rare) == pytest.approx(formula, rel=0.05)
    assert oue.std(PEOPLE) ** 2 == pytest.approx(formula, rel=1e-9)
    held = [each[value] for each in found for value in VALUES[:4]]
    of_ten = oue.std(PEOPLE, 10.0) ** 2
    assert abs(statistics.fmean(held) - 10.0) < 4.0 * math.sqrt(of_ten / len(held))
    assert statistics.variance(held) == pytest.approx(of_ten, rel=0.09)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_no_report_is_more_likely_than_epsilon_allows(epsilon: float) -> None:
    """Every report of three bits, in exact fractions of the coins that are tossed."""
    oue = OUE(["a", "b", "c"], epsilon)
    flip = Fraction(oue.flip_part, WHOLE)

    def chance(report: tuple[int, ...], own: int) -> Fraction:
        found = Fraction(1)
        for place, bit in enumerate(report):
            one = Fraction(1, 2) if place == own else flip
            found *= one if bit else 1 - one
        return found

    worst = max(chance(r, a) / chance(r, b) for r in product((0, 1), repeat=3) for a in range(3) for b in range(3))
    assert math.log(worst) == pytest.approx(oue.epsilon, rel=1e-12)
    assert oue.epsilon <= epsilon


def test_rounding_never_makes_epsilon_larger_and_changes_no_coins_without_need() -> None:
    digits, raised = Context(prec=100), 0
    for epsilon in (*(10.0**power for power in range(-12, 1)), *(k / 20 for k in range(1, 401)), 7 / 3, 1e-15, 40.0):
        oue = OUE(["a", "b"], epsilon)
        true = digits.ln(digits.divide(WHOLE - oue.flip_part, oue.flip_part))
        assert true <= Decimal(oue.epsilon) <= Decimal(epsilon), epsilon
        assert oue.epsilon >= epsilon * (1.0 - max(1e-15 / epsilon, 2.0**-63 * math.exp(epsilon))), epsilon
        assert oue.std(100) > 0.0
        of_the_float = at_least(1.0 / (math.exp(epsilon) + 1.0))
        if oue.flip_part != of_the_float:
            raised += 1
            assert digits.ln(digits.divide(WHOLE - of_the_float, of_the_float)) > Decimal(epsilon)
    assert raised > 50, "without more than floats the sentence would be false"


def test_the_same_value_is_the_same_report_and_another_device_has_another() -> None:
    oue = OUE(VALUES, 1.0)
    device = oue.reporter()
    assert len({device.report("value 3") for _ in range(50)}) == 1
    assert oue.reporter(device.secret).report("value 3") == device.report("value 3")
    assert len({oue.reporter().report("value 3") for _ in range(50)}) > 40
    assert len({oue.reporter(memoised=False).report("value 3") for _ in range(50)}) > 40


def test_memoised_reports_of_many_devices_are_counted_alike() -> None:
    oue = OUE(VALUES, 2.0)
    found = oue.estimate(oue.reporter().report("value 0") for _ in range(4_000))
    assert abs(found.counts["value 0"] - 4_000) < 4.5 * oue.std(4_000, 4_000)
    assert all(abs(found.counts[value]) < 4.5 * oue.std(4_000) for value in VALUES[1:])


def test_every_bit_of_a_long_report_is_counted_in_its_place() -> None:
    size, places = 100_000, [0, 1, 63, 64, 4_095, 50_000, 99_999]
    counts = [0] * size
    for _ in range(2):
        add_bits(counts, sum(1 << place for place in places))
    add_bits(counts, 0)
    assert [place for place, count in enumerate(counts) if count] == places
    assert {counts[place] for place in places} == {2}


def test_what_costs_is_said() -> None:
    said = str(OUE(["a", "b"], 1.0))
    assert "One report: ε = 1." in said
    assert "for ever: ε = 1 where reports are memoised" in said
    assert "Which memoised reports are of one value is not hidden." in said


@pytest.mark.parametrize("values", [["a"], ["a", "a"]])
def test_a_list_of_values_is_checked(values: list[str]) -> None:
    with pytest.raises(ValueError, match="different values"):
        OUE(values, 1.0)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 41.0, 1e-18, 1e-16, 5e-324])
def test_an_epsilon_is_checked(epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        OUE(["a", "b"], epsilon)


def test_an_undeclared_value_is_not_sent_and_a_malformed_report_is_not_counted() -> None:
    oue = OUE(["a", "b", "c"], 1.0)
    with pytest.raises(ValueError, match="not declared"):
        oue.reporter().report("d")
    for wrong in ("", "8", "00", "g", "-1", "+1", "²", None, 7, b"7"):
        with pytest.raises(InvalidReport):
            oue.estimate([wrong])  # type: ignore[list-item]
        assert not oue.is_report(wrong)
    with pytest.raises(InvalidReport):
        bits_of("0x1f", 16)
    assert bits_of("7", 3) == 7
    assert oue.estimate(filter(oue.is_report, ["7", "8", "x", "0"])).reports == 2


def test_equal_answers_to_two_questions_are_not_equal_reports() -> None:
    """From the same coins, two different texts would show that a device's answers differ, at no ε."""
    first, second = (OUE(["yes", "no"], 1.0, question=name) for name in ("ever ill?", "ever in prison?"))
    equal = 0
    for _ in range(PAIRS):
        device = first.reporter()
        equal += device.report("yes") == second.reporter(device.secret).report("yes")
    by_chance = 0.5 * (first.flip**2 + (1.0 - first.flip) ** 2)
    assert abs(equal / PAIRS - by_chance) < 6.0 * math.sqrt(by_chance * (1.0 - by_chance) / PAIRS)


def test_a_report_under_other_settings_is_of_other_coins() -> None:
    """From the same coins, an ε of 1 and then of 2 would let only bits of other values differ, and a longer list would show the first one's place."""
    first = OUE(["x", "y", "z"], 1.0)
    for second, mine, other in ((OUE(["x", "y", "z"], 2.0), 0, 1), (OUE(["w", "x", "y", "z"], 1.0), 1, 2)):
        differ = [[0, 0], [0, 0]]
        for _ in range(PAIRS):
            device = first.reporter()
            one, two = (
                bits_of(each.report("x"), len(each._settings.values))
                for each in (device, second.reporter(device.secret))
            )
            differ[0][(one ^ two >> mine) & 1] += 1
            differ[1][(one >> 1 ^ two >> other) & 1] += 1
        for (_, found), (p, q) in zip(differ, ((0.5, 0.5), (first.flip, second.flip)), strict=True):
            wanted = p * (1.0 - q) + q * (1.0 - p)
            assert abs(found / PAIRS - wanted) < 6.0 * math.sqrt(wanted * (1.0 - wanted) / PAIRS)
