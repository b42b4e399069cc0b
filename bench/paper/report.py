"""The page: every measure of every method beside the place where the paper's number belongs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from bench.paper.runs import DELTA, Result, Sizes

MEASURES = {
    "accuracy": "accuracy, %",
    "inception": "IS",
    "fid": "FID",
    "js": "JS at least, bits",
    "from_half": "equation 19",
    "processor": "CPU s",
    "seconds": "wall s",
}
PAPER = "see paper"
OURS = ("measured mixture", "IDPGAN from a mixture", "IDPGAN with bounded weights")
"""Not in the paper."""


def render(
    command: str,
    name: str,
    side: int,
    seeds: int,
    sizes: Sizes,
    device: str,
    compared: Mapping[str, Sequence[Result]],
    ablation: Mapping[str, Sequence[Result]],
    ablation_epsilon: float,
    tested_on: str,
) -> str:
    """Markdown."""
    head = (
        f"{device}; `{command}`; {name} at {side}×{side}, δ = {DELTA:g}, "
        f"{sizes.steps:,} critic steps,\nexpected batch {sizes.expected_batch}, {sizes.critic_steps} critic steps per "
        f"generator step, {seeds} seed(s): mean (standard deviation).\n\n"
        "ε of every private row is the price of the events that ran (PLD), calibrated from below; WGAN-GP has no noise and\n"
        f"may never be released. Accuracy: a small network trained for {sizes.epochs} epochs on {sizes.count:,} synthetic images,\n"
        f"tested on {tested_on}, never chosen by its score. IS and FID by the same network trained on real\n"
        "images: comparable with each other only. JS: by a fresh discriminator, a lower bound; equation 19:\n"
        "of the same discriminator, what the paper calls JS. The paper's numbers stand beside these in bench/results/paper-all.md.\n"
    )
    parts = [head, "### Methods\n\n" + _table(compared)]
    if ablation:
        parts.append(
            f"### Ablation of the three strategies (the paper's Table 4), ε = {ablation_epsilon:g}\n\n"
            + _table(ablation)
        )
    parts.append(
        "### Critic's distance over time, mean D(x) - D(G(z)), first seed (the paper's Figure 3)\n\n"
        + _distances(compared)
    )
    return "\n".join(parts)


def _table(results: Mapping[str, Sequence[Result]]) -> str:
    lines = [
        "| | paper | " + " | ".join(MEASURES.values()) + " |",
        "|---" * (len(MEASURES) + 2) + "|",
    ]
    for name, runs in results.items():
        cells = [_mean([run.scores[measure] for run in runs]) for measure in MEASURES]
        paper = "–" if name.startswith(OURS) else PAPER
        lines.append(f"| {name} | {paper} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _distances(results: Mapping[str, Sequence[Result]]) -> str:
    trained = {name: runs for name, runs in results.items() if runs[0].distances}
    if not trained:
        return "Nothing was trained.\n"
    steps = [look.step for look in next(iter(trained.values()))[0].distances]
    lines = ["| step | " + " | ".join(map(str, steps)) + " |", "|---" * (len(steps) + 1) + "|"]
    for name, runs in trained.items():
        lines.append(f"| {name} | " + " | ".join(f"{look.distance:.2f}" for look in runs[0].distances) + " |")
    return "\n".join(lines) + "\n"


def _mean(values: Sequence[float]) -> str:
    spread = f" ({statistics.stdev(values):.2f})" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{spread}"
