"""All attacks on what one maker makes: the releases that they need are made once, and shared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.audit.releases import exposure, inversion, likelihood, poisoning, shadow, unlearning
from bench.audit.releases.exposure import Exposures
from bench.audit.releases.making import LABEL, Attacked, Maker, base_rows, made_up_rows, outlier_row, with_copies
from bench.audit.releases.verdicts import Finding

GUESSED = (2, LABEL)
"""Columns whose values are guessed."""
EXPOSURE_COPIES = (0, 1, 4)
WORLD_SEEDS = 10**7
"""Apart: releases of different worlds never share a seed."""


@dataclass(frozen=True)
class Played:
    """What all attacks have found of one maker."""

    findings: list[Finding]
    exposures: dict[int, Exposures]
    """By copies."""
    class_means: tuple[float, float]
    """Distances of the real columns of each class to those read off a generator, and to even ones."""


class Worlds:
    """Releases of one maker, of each set of rows."""

    def __init__(self, maker: Maker, runs: int) -> None:
        self.maker, self.runs, self._used = maker, runs, 0

    def of(self, rows: np.ndarray, runs: int | None = None) -> list[Attacked]:
        """So many independent releases of these rows."""
        self._used += 1
        first = self._used * WORLD_SEEDS
        return [self.maker(rows, first + run) for run in range(runs or self.runs)]


def targets(rows: np.ndarray) -> dict[str, np.ndarray]:
    """A row unlike all others, and one like them."""
    return {"an outlier": outlier_row(rows), "a random row": made_up_rows(1, 99)[0].astype(np.int64)}


def play(maker: Maker, runs: int, *, is_short: bool = False) -> Played:
    """runs: releases in each world. is_short: attacks on the outlier in one release alone, which need two worlds."""
    rows, worlds = base_rows(), Worlds(maker, runs)
    without = worlds.of(rows)
    findings: list[Finding] = []
    for name, row in targets(rows).items():
        if is_short and findings:
            return Played(findings, {}, inversion.class_mean_distances(without, rows))
        releases = without, worlds.of(with_copies(rows, row))
        findings += on_a_row(name, row, maker, releases)
        if name == "an outlier" and not is_short:
            findings += on_two_releases(row, worlds, rows, releases)
    copies = 2 if maker.is_control else poisoning.most_copies(maker.price, maker.paid().delta)
    row = poisoning.poison_row(rows)
    with_poison = worlds.of(with_copies(rows, row, copies))
    findings.append(poisoning.attack(row, maker.made_by, maker.paid(copies=copies), (without, with_poison)))
    found = {k: exposure.exposures(maker, rows, k, runs, seed=k * WORLD_SEEDS // 100) for k in EXPOSURE_COPIES}
    findings += [exposure.proven(one, maker.made_by) for k, one in found.items() if k > 0]
    return Played(findings, found, inversion.class_mean_distances(without, rows))


def on_a_row(
    name: str, row: np.ndarray, maker: Maker, releases: tuple[Sequence[Attacked], Sequence[Attacked]]
) -> list[Finding]:
    """releases: without the row, and with it."""
    paid, made_by = maker.paid(), maker.made_by
    return [
        shadow.attack(name, made_by, paid, releases),
        likelihood.attack(name, row, made_by, paid, releases),
        *(inversion.attack((name, row), place, made_by, paid, releases) for place in GUESSED),
    ]


def on_two_releases(
    row: np.ndarray, worlds: Worlds, rows: np.ndarray, first: tuple[Sequence[Attacked], Sequence[Attacked]]
) -> list[Finding]:
    """Histories that end without the row, and one in which it comes instead of going. first: without the row, and with it."""
    maker, (without, with_row) = worlds.maker, first
    deleted, other = (with_row, worlds.of(rows)), worlds.of(rows)
    others = {
        "deleted or never there": (without, other),
        "deleted or added": (other, worlds.of(with_copies(rows, row))),
    }
    paid = maker.paid(releases=2)
    return [unlearning.attack(name, row, maker.made_by, paid, (pair, deleted)) for name, pair in others.items()]
