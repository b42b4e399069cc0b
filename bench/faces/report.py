"""The page of results."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from scipy.stats import t

from bench.faces.attacks import ORIGINAL, PERSON, TOLD, may_be_told
from bench.faces.claims import Found, Runs, beside, mean, sets
from bench.faces.images import PEOPLE, Floats, entropy, low_pass, scores
from bench.faces.releases import BROKEN, CLEAN_BEFORE, ENTROPY_BEFORE, LOW_PASS_BEFORE, Release

NEAR = 3.0
"""Points of accuracy within which the figures of before were to be met."""
CHANCE = 100.0 / PEOPLE
WITHOUT_NOISE = (
    "The rows of real images and of k = 3 without noise have no seed, and are not quite those of before either: the classifier of before "
    "differed in something that is not known."
)
CLAIMED = (
    "The paper's numbers are phrases; its figures were not read off. *Re-made*: the published form, on ORL, which has no "
    "finite ε. *Honest*: `image_release` of columns of pixels at the same ε, compared with forms that are private; a dash was not run. With as many test "
    "images of every person recall is accuracy, so the paper's ratios on Yale cannot be of these two; it may mean precision. What is at "
    f"chance ({CHANCE:g} % here, 1.4 % on Faces95) can be beaten by at most {100 / CHANCE:g} × here, 72 × there."
)


def markdown(
    images: Floats, runs: Runs, scaled: Runs, found: Found, ratios: dict[float, float], made: dict[str, Release]
) -> str:
    parts = [
        utility(images, runs, made),
        f"### Claimed beside honest\n\n{CLAIMED}\n\n{beside(runs, found, ratios)}",
        f"The paper's sets (Table 1):\n\n{sets()}",
        f"### Against the figures of before\n\n{against_before(runs, made)}\n\n{WITHOUT_NOISE}\n\n{of_scaled(scaled, made)}",
        f"### Attacks\n\n{of_attacks(found)}",
    ]
    return "\n\n".join(parts)


def utility(images: Floats, runs: Runs, made: dict[str, Release]) -> str:
    """Accuracy, precision, F1 and entropy of each, beside the figures of before."""
    lines = [
        _plain("real images", images, CLEAN_BEFORE, ENTROPY_BEFORE["real images"]),
        _plain("k = 3, no noise", low_pass(images, 3), LOW_PASS_BEFORE, "–"),
        _plain("k = 8, no noise", low_pass(images, 8), None, "–"),
    ]
    for name, release in made.items():
        shown = f"{name} (broken)" if name in BROKEN else name
        for epsilon in sorted(release.epsilons):
            if (name, epsilon) in runs:
                before = release.accuracy_before(epsilon)
                lines.append(_line(shown, f"{epsilon:g}", runs[name, epsilon], before, ENTROPY_BEFORE.get(name, "–")))
    return (
        "| release | ε | seeds | accuracy, which is recall, % | of before | precision | F1 | entropy, bits | of before |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n" + "\n".join(lines)
    )


def _plain(name: str, images: Floats, before: float | None, bits_before: str) -> str:
    return _line(name, "–", [scores(images) | {"entropy": entropy(images)}], before, bits_before)


def _line(name: str, epsilon: str, of_seeds: Sequence[dict[str, float]], before: float | None, bits_before: str) -> str:
    accuracies = [run["accuracy"] for run in of_seeds]
    spread = f" ± {statistics.stdev(accuracies):.1f}" if len(of_seeds) > 1 else ""
    known = "–" if before is None else f"{before:g}"
    rest = " | ".join(
        f"{statistics.fmean(run[score] for run in of_seeds):.{digits}f}"
        for score, digits in (("precision", 1), ("f1", 1), ("entropy", 2))
    )
    seeds = "–" if epsilon == "–" else str(len(of_seeds))
    return f"| {name} | {epsilon} | {seeds} | {statistics.fmean(accuracies):.1f}{spread} | {known} | {rest} | {bits_before} |"


def far_from_before(runs: Runs, made: dict[str, Release]) -> list[tuple[str, float]]:
    """Releases and ε whose mean is further from the figure of before than was asked."""
    known = {cell: made[cell[0]].accuracy_before(cell[1]) for cell in runs}
    return [cell for cell, before in known.items() if before is not None and abs(before - mean(runs, *cell)) > NEAR]


def against_before(runs: Runs, made: dict[str, Release]) -> str:
    """Every cell that was so far from before that it got more seeds, or still is; and whether one seed of several explains it."""
    known = [cell for cell in runs if made[cell[0]].accuracy_before(cell[1]) is not None]
    far = far_from_before(runs, made)
    fewest = min(len(runs[cell]) for cell in known)
    lines = []
    for name, epsilon in known:
        if (name, epsilon) not in far and len(runs[name, epsilon]) == fewest:
            continue
        before = made[name].accuracy_before(epsilon) or 0.0
        accuracies = [run["accuracy"] for run in runs[name, epsilon]]
        spread = statistics.stdev(accuracies) if len(accuracies) > 1 else 0.0
        lines.append(
            f"| {name} | {epsilon:g} | {before:g} | {len(accuracies)} | {statistics.fmean(accuracies):.1f} ± {spread:.1f} | "
            f"{min(accuracies):g} to {max(accuracies):g} | {_verdict(before, accuracies, spread)} |"
        )
    said = f"{len(known) - len(far)} of {len(known)} means are within {NEAR:g} points of the single run of before."
    if not lines:
        return said
    return (
        f"{said} Cells that got more seeds because they were further off, mean ± standard deviation over seeds:\n\n"
        "| release | ε | of before | seeds | here | least to most | |\n|---|---:|---:|---:|---:|---:|---|\n"
        + "\n".join(lines)
    )


def of_scaled(scaled: Runs, made: dict[str, Release]) -> str:
    """Accuracies where components have variance 1 before the classifier sees them."""
    said = ", ".join(
        f"{name.removeprefix('image_release, ')} at ε = {epsilon:g} {mean(scaled, name, epsilon):.1f} ({before:g})"
        for name, epsilon in scaled
        if (before := made[name].accuracy_before(epsilon)) is not None
    )
    return f"With components scaled to variance 1 first, in brackets the figure of before: {said}."


def _verdict(before: float, accuracies: Sequence[float], spread: float) -> str:
    """Whether a single run can be as far from the mean of these as before was: 95 %, by Student's t."""
    count, off = len(accuracies), abs(before - statistics.fmean(accuracies))
    if off <= NEAR:
        return "met by the mean"
    if min(accuracies) <= before <= max(accuracies):
        return "one seed explains it"
    if count > 1 and off <= t.ppf(0.975, count - 1) * math.sqrt(1.0 + 1.0 / count) * spread:
        return "no seed is there, but one run can be so far off (95 %)"
    return "not met again: one seed does not explain it"


def of_attacks(found: Found) -> str:
    lines = []
    for _, release, epsilon, tries, shares in found:
        for what, share in shares.items():
            by_chance = may_be_told(epsilon) if what == TOLD else {ORIGINAL: 0.25, PERSON: CHANCE}[what]
            lines.append(f"| {what} | {release} | {epsilon:g} | {tries} | {share:.1f} % | {by_chance:.2f} % |")
    return (
        "*May*: for neighbours the most that ε allows, else chance. The person is looked for among the other images.\n\n"
        "| what | release | ε | tries | succeeds | may |\n|---|---|---:|---:|---:|---:|\n" + "\n".join(lines)
    )
