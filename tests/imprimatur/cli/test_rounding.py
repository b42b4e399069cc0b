"""An ε that is shown as the largest that fits may be ordered as it is shown."""

from __future__ import annotations

import pytest

from imprimatur.cli.output import rounded_down


@pytest.mark.parametrize(
    ("epsilon", "shown"),
    [
        (4.00069, "4"),
        (3.99999, "3.999"),
        (0.123456, "0.1234"),
        (0.3, "0.3"),
        (12.5, "12.5"),
        (0.0, "0"),
        (3.0, "3"),
        (1.99e-5, "1.99e-05"),
    ],
)
def test_the_largest_epsilon_is_rounded_down(epsilon, shown):
    assert rounded_down(epsilon) == shown
    assert float(shown) <= epsilon
