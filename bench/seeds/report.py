"""The section of a data set: means over seeds, what every order paid for, and the orders."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from bench.seeds.methods import METHODS, REFERENCES, order_of
from bench.seeds.runs import DELTA, EPOCHS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.seeds.methods import Sizes

DECIMALS = {"LR": 3, "GB": 3, "TV1": 3, "TV2": 3, "accuracy": 1, "FID": 1}
SHOWN = {"adult": ("LR", "GB", "TV1", "TV2"), "mnist": ("accuracy", "FID")}
NO_NOISE = "no noise"


def markdown(data: str, sizes: Sizes, runs: Sequence[dict[str, Any]], hardware: str) -> str:
    """runs: of every data set, as bench/runs holds them."""
    of_it, shown = [run for run in runs if run["data"] == data], SHOWN[data]
    epsilons = sorted({run["epsilon"] for run in of_it if run["epsilon"] is not None})
    wanted: list[tuple[str, float | None, str]] = [(name, None, "–") for name in REFERENCES[data]]
    for name in METHODS[data]:
        wanted += [*((name, epsilon, f"{epsilon:g}") for epsilon in epsilons), (name, None, NO_NOISE)]
    lines = [
        _head(data, sizes, hardware),
        "",
        "| method | ε | seeds | " + " | ".join(shown) + " | CPU s |",
        "|---" * (len(shown) + 4) + "|",
    ]
    for name, epsilon, label in wanted:
        found = [run for run in of_it if (run["method"], run["epsilon"]) == (name, epsilon)]
        if found:
            cells = [_cell([run["scores"][score] for run in found], DECIMALS[score]) for score in shown]
            seconds = np.mean([run["cpu_seconds"] for run in found])
            lines.append(f"| {name} | {label} | {len(found)} | " + " | ".join(cells) + f" | {seconds:.0f} |")
    return "\n".join([*lines, "", *_prices(of_it, data), "", *_orders(data, sizes)]) + "\n"


def _head(data: str, sizes: Sizes, hardware: str) -> str:
    kinds = {
        "adult": (
            f"{sizes.train:,} training rows of Adult (the first after a shuffle), {sizes.made:,} synthetic ones; LR, GB: AUROC of logistic "
            "regression and boosted trees trained on synthetic rows, on all 16,281 test rows; TV1, TV2: total variation from the training rows"
        ),
        "mnist": (
            f"{sizes.train:,} training images of MNIST at 14×14, {sizes.made:,} synthetic ones; accuracy in %, on the 10,000 test images, of a small "
            f"convolutional network trained for {EPOCHS} epochs on synthetic images; FID in the features of the same network trained on real ones"
        ),
    }
    return (
        f"{hardware}, busy with other work; `python -m bench.seeds --data {data}`; δ = {DELTA:g} of one release; {kinds[data]}. "
        f"Whatever is trained takes {sizes.steps} private steps of {sizes.batch} expected records, unless its order says otherwise. "
        "Nothing was tuned. One seed, both of two, or the mean ± half the 95 % interval (t) over more; CPU s: from records to generator, and drawing. "
        f"*{NO_NOISE}*: the same order, resolved as at ε = 10, with a millionth of its noise and its clipping; not private."
    )


def _prices(runs: Sequence[dict[str, Any]], data: str) -> list[str]:
    """One run of every method and ε: prices do not depend on rows or seeds."""
    lines = ["| method | ε | ε by PLD | what was paid for |", "|---|---|---|---|"]
    priced: dict[tuple[str, float], dict[str, Any]] = {}
    for run in runs:
        if run["pld_epsilon"] is not None:
            priced.setdefault((run["method"], run["epsilon"]), run)
    for name in METHODS[data]:
        for (method, epsilon), run in sorted(priced.items()):
            if method == name:
                paid = "; ".join(_pooled(run["paid_for"]))
                lines.append(f"| {name} | {epsilon:g} | {run['pld_epsilon']:.3f} | {paid} |")
    return lines


def _pooled(paid: Sequence[str]) -> list[str]:
    """Equal releases that follow each other, once."""
    pooled = [(what, len(list(alike))) for what, alike in itertools.groupby(paid)]
    return [what if count == 1 else f"{count} × {what}" for what, count in pooled]


def _orders(data: str, sizes: Sizes) -> list[str]:
    return ["Orders, ε apart:", ""] + [
        f"- {name}: `{json.dumps(order_of(data, name, sizes))}`" for name in METHODS[data]
    ]


def _cell(values: Sequence[float], decimals: int) -> str:
    if len(values) == 1:
        return f"{values[0]:.{decimals}f}"
    if len(values) == 2:  # an interval of two would be the range, thirteen times
        return " and ".join(f"{value:.{decimals}f}" for value in values)
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.{decimals}f} ± {half:.{decimals}f}"
