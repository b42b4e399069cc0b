"""What IDPGAN's paper reports (Acta Electronica Sinica 48(10), 2020), number by number, to stand beside what is measured here.

None of it is private at the ε it names (docs/explanation/idpgan.md).
"""

from __future__ import annotations

from typing import NamedTuple


class Claim(NamedTuple):
    """A mean, and what stands behind ± where there is anything."""

    value: float
    spread: float | None = None

    def __str__(self) -> str:
        return f"{self.value:.2f}" if self.spread is None else f"{self.value:.2f} ± {self.spread:.2f}"


Cell = tuple[str, float | None]
"""Method and ε."""

INCEPTION: dict[str, dict[Cell, Claim]] = {
    "mnist": {
        ("real data", None): Claim(9.96, 0.03),
        ("WGAN-GP", None): Claim(9.21, 0.03),
        ("DPGAN", 4.0): Claim(8.64, 0.03),
        ("GANobfuscator", 4.0): Claim(8.89, 0.02),
        ("DPACGAN", 4.0): Claim(8.81, 0.03),
        ("IDPGAN", 2.0): Claim(8.56, 0.02),
        ("IDPGAN", 4.0): Claim(8.93, 0.03),
        ("IDPGAN", 8.0): Claim(8.96, 0.03),
    },
    "poker": {
        ("real data", None): Claim(4.43, 0.01),
        ("WGAN-GP", None): Claim(3.16, 0.01),
        ("DPGAN", 15.0): Claim(2.23, 0.01),
        ("GANobfuscator", 15.0): Claim(2.54, 0.01),
        ("DPACGAN", 15.0): Claim(2.39, 0.01),
        ("IDPGAN", 10.0): Claim(2.25, 0.01),
        ("IDPGAN", 15.0): Claim(2.65, 0.01),
        ("IDPGAN", 20.0): Claim(2.78, 0.02),
    },
}
"""Table 1."""

DIVERGENCE: dict[Cell, Claim] = {
    ("real data", None): Claim(0.0),
    ("WGAN-GP", None): Claim(0.09, 0.01),
    ("DPGAN", 10.0): Claim(0.29, 0.01),
    ("GANobfuscator", 10.0): Claim(0.26, 0.01),
    ("DPACGAN", 10.0): Claim(0.24, 0.01),
    ("IDPGAN", 3.0): Claim(0.42, 0.02),
    ("IDPGAN", 6.0): Claim(0.30, 0.01),
    ("IDPGAN", 10.0): Claim(0.21, 0.01),
}
"""Table 2, of CelebA."""

ACCURACY: dict[str, dict[Cell, Claim]] = {
    "mnist": {
        ("real data", None): Claim(99.6),
        ("WGAN-GP", None): Claim(97.9),
        ("DPGAN", 4.0): Claim(94.2),
        ("GANobfuscator", 4.0): Claim(95.4),
        ("DPACGAN", 4.0): Claim(94.7),
        ("IDPGAN", 1.0): Claim(85.8),
        ("IDPGAN", 2.0): Claim(92.7),
        ("IDPGAN", 4.0): Claim(96.1),
        ("IDPGAN", 8.0): Claim(97.3),
    },
    "poker": {
        ("real data", None): Claim(58.42),
        ("WGAN-GP", None): Claim(54.83),
        ("DPGAN", 15.0): Claim(48.43),
        ("GANobfuscator", 15.0): Claim(50.07),
        ("DPACGAN", 15.0): Claim(49.30),
        ("IDPGAN", 5.0): Claim(41.38),
        ("IDPGAN", 10.0): Claim(47.56),
        ("IDPGAN", 15.0): Claim(51.25),
        ("IDPGAN", 20.0): Claim(52.51),
    },
}
"""Table 3."""

STRATEGIES: dict[str, dict[str, Claim]] = {
    "none of the three": {"mnist": Claim(8.64, 0.03), "poker": Claim(2.23, 0.01), "celeba": Claim(0.29, 0.01)},
    "decaying noise alone": {"mnist": Claim(8.71, 0.04), "poker": Claim(2.34, 0.01), "celeba": Claim(0.25, 0.02)},
    "adaptive thresholds alone": {"mnist": Claim(8.61, 0.02), "poker": Claim(2.40, 0.01), "celeba": Claim(0.29, 0.01)},
    "decaying noise and thresholds": {
        "mnist": Claim(8.82, 0.03),
        "poker": Claim(2.58, 0.01),
        "celeba": Claim(0.23, 0.01),
    },
    "thresholds and clusters": {"mnist": Claim(8.78, 0.04), "poker": Claim(2.43, 0.01), "celeba": Claim(0.32, 0.02)},
    "all three (IDPGAN)": {"mnist": Claim(8.93, 0.03), "poker": Claim(2.65, 0.01), "celeba": Claim(0.21, 0.01)},
}
"""Table 4: Inception scores of MNIST at ε = 4 and of Poker Hand at ε = 15, equation 19 of CelebA at ε = 10."""

IMAGES, POKER = ("mnist", "fashion_mnist"), "poker"
EPSILONS = {"mnist": (4.0, 1.0, 2.0, 8.0), "fashion_mnist": (10.0, 3.0, 6.0), POKER: (15.0, 5.0, 10.0, 20.0)}
"""The paper's of each set, the one of its comparisons first; Fashion-MNIST stands where it has CelebA."""
COMPARED = ("DPGAN", "GANobfuscator", "DPACGAN")
