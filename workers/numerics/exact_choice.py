"""One of several, with probabilities in proportion to exp(-rate·loss), in whole numbers of many digits.

Weights are rounded up at 2^-PRECISION of the largest, so none is zero: each probability is right to that, absolutely, which is far below the
least δ that is priced (`service.privacy.calibration.SMALLEST_DELTA`). Every weight is computed, whichever is likely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from itertools import accumulate

PRECISION = 384
_DIGITS = Context(prec=130, Emin=-(10**9))
"""2^384 has 116 digits."""

RandomBits = Callable[[int], int]
"""How many bits, a multiple of 64 -> a uniform integer below two to that power."""


def pick(weights: Sequence[int], bits: RandomBits) -> int:
    """A place, with probability in proportion to its weight."""
    ends = list(accumulate(weights))
    drawn = below(ends[-1], bits)
    return sum(end <= drawn for end in ends)


def weights_of(losses: Sequence[int], rate: Fraction) -> list[int]:
    """Whole numbers from 1 to 2^PRECISION in proportion to exp(-rate·loss); losses are whole numbers."""
    least = min(losses)
    one = _DIGITS.divide(_DIGITS.create_decimal(-rate.numerator), _DIGITS.create_decimal(rate.denominator))
    top = _DIGITS.power(_DIGITS.create_decimal(2), PRECISION)
    found = []
    for loss in losses:
        exponent = _DIGITS.multiply(one, _DIGITS.create_decimal(loss - least))
        weight = _DIGITS.multiply(top, _DIGITS.exp(exponent))
        found.append(max(1, int(weight.to_integral_value(rounding=ROUND_CEILING, context=_DIGITS))))
    return found


def below(bound: int, bits: RandomBits) -> int:
    """Uniform on 0 … bound - 1."""
    count = -(-bound.bit_length() // 64) * 64
    whole = (1 << count) // bound * bound
    while (drawn := bits(count)) >= whole:
        pass
    return drawn % bound
