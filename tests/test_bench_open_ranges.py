"""The page of open ranges is what its runs say."""

from __future__ import annotations

from typing import Any

from bench.tables.open_ranges import EPSILONS, GIVEN, MEASURES, OPEN, markdown


def _run(table: str, method: str, epsilon: float, distance: float, seed: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = {"table": table, "method": method, "epsilon": epsilon, "seed": seed, "rows": 1_000}
    return found | dict.fromkeys(MEASURES, distance)


def test_ratios_are_of_means_over_seeds_and_the_last_line_is_their_geometric_mean() -> None:
    runs = [_run("shop", GIVEN, epsilon, 0.01) for epsilon in EPSILONS]
    runs += [_run("shop", OPEN, epsilon, 0.01, 1) for epsilon in EPSILONS]
    runs += [_run("shop", OPEN, epsilon, 0.03, 2) for epsilon in EPSILONS]
    runs += [_run("tuna", GIVEN, 1.0, 0.01), _run("tuna", OPEN, 1.0, 0.005)]  # not run at ε = 10
    *_, shop, tuna, means = markdown(runs).splitlines()
    assert shop == "| shop | 1,000 |" + " 0.0100 / 0.0200 | 2.00 |" * 4
    assert tuna == "| tuna | 1,000 |" + " 0.0100 / 0.0050 | 0.50 |" * 2 + "  |  |" * 2
    assert "**1.00 ± 0.69** (2, 1 within)" in means
    assert "**2.00** (1, 0 within)" in means
