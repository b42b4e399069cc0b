"""The page of `python -m bench.paper --all`: claimed beside honest for every number of the paper, and what was not run."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from bench.paper.claims import ACCURACY, COMPARED, DIVERGENCE, EPSILONS, INCEPTION, POKER, STRATEGIES, Cell, Claim
from bench.paper.methods import REAL, WITHOUT_PRIVACY

Row = dict[str, Any]
NOT_RUN, EARLIER = "not run", "ᵉ"
NAMES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "poker": "Poker Hand"}
FIGURE_3 = ("DPGAN", "GANobfuscator", "IDPGAN")
FIRST = {data: epsilons[0] for data, epsilons in EPSILONS.items()}

HEAD = """# `python -m bench.paper --all`

The tables of IDPGAN's paper (Acta Electronica Sinica 48(10), 2020) again. **Claimed** is the paper's number at the ε that it names, which is not the ε of what it
describes ([why](../../docs/explanation/idpgan.md)). **Honest** is measured here, at an ε that is the price of the events that ran (tight accounting, δ = 1e-5).
Claimed and honest have other sizes, networks and classifiers: read down a column, not across.

- Images are 14×14; 20,000 synthetic ones train a small network for three epochs, which is tested on 10,000 real ones (the paper: a LeNet). 512 units expected in a draw, two critic steps for
  each generator step. The Inception score uses features of a small network trained on real images.
- Poker Hand: 25,010 rows train, as many synthetic ones train a perceptron of one hidden layer for 20 epochs. Five critic steps for each generator step. The paper has a LeNet.
- DPGAN is Xie et al. 2018, with bounded weights. The paper's DPGAN is WGAN-GP with one clip norm: the first row of Table 4. DPACGAN is Guo et al. 2018, with made-up public records; of rows it exists in this bench alone.
- WGAN-GP has no noise and may never be released. "measured mixture" is this project's method for images, not the paper's.
- The paper scores 60,000 images of MNIST, 25,000 hands and 200,000 faces (n in its Tables 1 and 2); here 10,000 images, and 25,010 hands.
- Each honest number: mean (standard deviation over seeds), then critic steps and seeds. The longest runs that were made. A cell with "not run" was not.
- ᵉ: of an earlier run, by the same command without `--all`, or by `python -m bench.poker` (δ = 4e-6), in [paper](paper.md) and [poker](poker.md). Equation 19 and balanced scores were not taken then. A run of `--all` as long takes its place.

Full runs are 5,000 steps of images and 3,000 of cards. `python -m bench.paper --all --seeds 3` goes on where it was broken off: runs in `bench/results/paper-all.json`
are not made again. `--short` is 1,000 and 600 steps, and 200 of DPACGAN; `--minutes 20` begins no run after twenty minutes; `--only "mnist, IDPGAN"` runs what the words name.
"""


def text_of(stored: dict[str, Any]) -> str:
    runs: list[Row] = [*stored["runs"], *stored.get("earlier", [])]
    parts = [HEAD, _prices(stored.get("prices")), _inception(runs), _divergence(runs), _accuracy(runs)]
    parts += [_strategies(runs), _distances(runs), _missing(runs), LEFT_OUT]
    return "\n".join(parts)


LEFT_OUT = """## Not made again

- CelebA is in no offline source here. Fashion-MNIST stands in its place, at its ε.
- MNIST at 28×28 with the paper's networks and 60,000 steps or more: a matter for a GPU. Whole images, fewer steps: [paper](paper.md).
- Figures 1 and 2 (pictures at several ε): `bench/runs` has a picture for each method after `python -m bench.paper`.
"""


def _prices(prices: list[list[str]] | None) -> str:
    text = (
        "## What its own settings cost\n\nMNIST: q = 64/60000, σ_t = 10·exp(-0.02·t), t = 0.01 × generator steps, σ_c = 4, five critic steps each, δ = 1e-5. A price is computed; nothing is trained.\n\n"
        "| run | counted | ε |\n|---|---|---|\n"
    )
    rows = prices or [["all", "", NOT_RUN]]
    return text + "".join(f"| {what} | {how} | {price} |\n" for what, how, price in rows) + PRICE_NOTES


PRICE_NOTES = """
Read literally, line 5 of the paper's clipping gives *every example* noise σ_t·c_j and then averages. The sum has √64 = 8 times as much noise then, which the analysis does not count: images pay for it, ε does not.
This table takes σ_t for the noise of the sum, as the paper's formula does. It changes nothing for the thresholds. "Scalar weights" is what the paper means by n_param and Minpts = 2,000: a histogram for each of
the critic's weights, 1,029,696 in the network it takes. One record adds a count to each, so the noise multiplier is √2·4/√1,029,696 = 0.0056. There is no finite use of it: it was priced, not trained. Bins up to the
batch's largest norm have no finite ε at all ([audits](../../docs/audits.md#the-papers-acts-is-broken)).
"""


def _inception(runs: list[Row]) -> str:
    text = "## Table 1: Inception score, larger is better\n\n"
    text += _compared(runs, "mnist", INCEPTION["mnist"], {"honest": "inception"})
    columns = {"honest, classes balanced": "balanced inception", "honest, shares as drawn": "inception"}
    text += "\n" + _compared(runs, "poker", INCEPTION["poker"], columns)
    most = next((run["most"] for run in runs if "most" in run), None)
    bound = "" if most is None else f" exp of the entropy of the true classes is {most:.2f}."
    return (
        text
        + f"\nThe paper's 4.43 for real hands cannot be reached: at the true shares of classes no Inception score passes exp(H(class)).{bound} So the first column weighs "
        "every class that occurs alike; then it can be 10. Its judge is trained on as many rows of each class, and real data are the very rows that it was trained on. All Inception scores of cards are by the bench's own judges. Shares as drawn tell nothing: rows of a generator that learnt no hand score as real ones do, because an Inception score asks only whether the judge is sure and its answers vary.\n"
    )


def _divergence(runs: list[Row]) -> str:
    text = '## Table 2: equation 19 ("JS"), smaller is better\n\nClaimed for CelebA; honest for the sets that are here. Equation 19 is half of a symmetrised Kullback-Leibler divergence of a discriminator\'s shares from one half, not a JS divergence. Beside it a lower bound of the JS divergence by the same discriminator, in bits.\n\n'
    columns = {"equation 19": "from_half", "JS at least, bits": "js"}
    text += _compared(runs, "fashion_mnist", DIVERGENCE, columns, claimed="claimed (CelebA)")
    return text + "\n" + _compared(runs, "mnist", dict.fromkeys(INCEPTION["mnist"], None), columns, claimed=None)


def _accuracy(runs: list[Row]) -> str:
    text = "## Table 3: accuracy in %, trained on synthetic, tested on real\n\n"
    text += _compared(runs, "mnist", ACCURACY["mnist"], {"honest": "accuracy"})
    text += "\n" + _compared(runs, "poker", ACCURACY["poker"], {"honest": "accuracy"})
    majority = next((run["scores"]["majority"] for run in runs if "majority" in run["scores"]), None)
    note = (
        "" if majority is None else f"\nAlways guessing the commonest class of a hand is right in {majority:.2f} %.\n"
    )
    return text + note


def _strategies(runs: list[Row]) -> str:
    lines = [
        "## Table 4: what each strategy is worth\n",
        "Inception score of MNIST at ε = 4 and of Poker Hand at ε = 15 (honest: classes balanced); equation 19 of CelebA at ε = 10 (honest: Fashion-MNIST). Rows of one length, where all six were run at it; else each one's longest: compare rows of equal steps and ε only. Where the paper's ε was not run, another one stands and is named.\n",
        "| | MNIST, claimed | honest | honest accuracy, % | Poker, claimed | honest | honest accuracy, % | CelebA, claimed | Fashion, honest | honest accuracy, % |",
        "|---" * 10 + "|",
    ]
    for name, claims in STRATEGIES.items():
        method = "IDPGAN" if name == "all three (IDPGAN)" else name
        cells = [name]
        for data, claimed, score in (
            ("mnist", "mnist", "inception"),
            ("poker", "poker", "balanced inception"),
            ("fashion_mnist", "celeba", "from_half"),
        ):
            cell, alike = (method, FIRST[data]), _alike(runs, data)
            honest = (_honest(alike, data, cell, wanted, other_epsilon=True) for wanted in (score, "accuracy"))
            cells += [str(claims[claimed]), *honest]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _alike(runs: list[Row], data: str) -> list[Row]:
    """Of the paper's ε, the runs of the greatest length at which all strategies were run; all runs where there is none."""
    own = [run for run in runs if (run["data"], run["epsilon"]) == (data, FIRST[data]) and "seeds" not in run]
    names = {*STRATEGIES, "IDPGAN"} - {"all three (IDPGAN)"}
    for steps in sorted({run["steps"] for run in own}, reverse=True):
        found = [run for run in own if run["steps"] == steps]
        if names <= {run["method"] for run in found}:
            return found
    return runs


def _distances(runs: list[Row]) -> str:
    text = (
        "## Figure 3: the critic's estimate of the Wasserstein distance, mean D(x) - D(G(z))\n\nClaimed: IDPGAN ends lowest on all three sets, and takes at most about 10 % longer than GANobfuscator. "
        "The paper has curves and no numbers. Fashion-MNIST stands for CelebA. First seed, at the ε at which most was run; seconds of the processor at the last look. Critics differ, so estimates of two methods are not on one scale.\n"
    )
    for data in FIRST:
        epsilon, shown = _figure(runs, data)
        text += f"\n**{NAMES[data]}, ε = {epsilon:g}**\n\n"
        if not shown:
            text += f"{NOT_RUN}\n"
            continue
        places = max(len(run["looks"]) for run in shown.values())
        text += "| | steps | " + " | ".join(f"{place + 1}/{places}" for place in range(places)) + " | seconds |\n"
        text += "|---" * (places + 3) + "|\n"
        for method, run in shown.items():
            looks = [f"{look[2]:.2f}" for look in run["looks"]]
            seconds = run["looks"][-1][1] or run["scores"]["processor"]
            text += f"| {method} | {run['steps']:,} | {' | '.join(looks)} | {seconds:.0f} |\n"
    return text


def _figure(runs: list[Row], data: str) -> tuple[float, dict[str, Row]]:
    """The ε at which most of the three methods were run, and longest; the paper's where that is equal."""
    best: tuple[tuple[int, int, bool, float], float, dict[str, Row]] = ((0, 0, False, 0.0), FIRST[data], {})
    for epsilon in {run["epsilon"] for run in runs if run["data"] == data and run["epsilon"]}:
        found = {
            method: _longest([run for run in runs if run["looks"]], data, (method, epsilon)) for method in FIGURE_3
        }
        shown = {method: group[0] for method, group in found.items() if group}
        rank = (len(shown), min((run["steps"] for run in shown.values()), default=0), epsilon == FIRST[data], epsilon)
        if rank > best[0]:
            best = (rank, epsilon, shown)
    return best[1:]


def _missing(runs: list[Row]) -> str:
    """Of the paper's own cells, and of the other methods at its other ε."""
    cells: list[tuple[str, Cell]] = [(data, cell) for data in ("mnist", "poker") for cell in ACCURACY[data]]
    cells += [("fashion_mnist", cell) for cell in DIVERGENCE]
    cells += [
        (data, (method, epsilon)) for data in ("mnist", POKER) for epsilon in EPSILONS[data] for method in COMPARED
    ]
    cells = [*dict.fromkeys(cells)]
    groups = [(data, cell, _longest(runs, data, cell)) for data, cell in cells]
    absent = [_words(data, cell) for data, cell, group in groups if not group]
    seeds = min((len(group) for _, _, group in groups if group), default=0)
    text = f"## What is not there yet\n\nThe least number of seeds of a cell that was run is {seeds}. "
    return text + (
        "Every cell that the paper has in Tables 1 to 3 was run.\n"
        if not absent
        else f"Not run: {'; '.join(absent)}.\n"
    )


def _words(data: str, cell: Cell) -> str:
    return f"{NAMES[data]} {cell[0]}" + ("" if cell[1] is None else f" ε = {cell[1]:g}")


def _compared(
    runs: list[Row],
    data: str,
    claims: dict[Cell, Claim] | dict[Cell, None],
    columns: dict[str, str],
    *,
    claimed: str | None = "claimed",
) -> str:
    """A line for each cell that the paper has, and for those that were run besides."""
    heads = [NAMES[data], "ε", *([claimed] if claimed else []), *columns]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for cell in _ordered({*claims, *((run["method"], run["epsilon"]) for run in runs if run["data"] == data)}):
        if cell[0] in STRATEGIES:
            continue
        claim = claims.get(cell)
        found = [_honest(runs, data, cell, score) for score in columns.values()]
        shown = [cell[0], "–" if cell[1] is None else f"{cell[1]:g}"]
        shown += [str(claim) if claim is not None else "–"] if claimed else []
        lines.append(f"| {' | '.join((*shown, *found))} |")
    return "\n".join(lines) + "\n"


def _ordered(cells: Iterable[Cell]) -> list[Cell]:
    first = (REAL, WITHOUT_PRIVACY, "DPGAN", "GANobfuscator", "DPACGAN", "IDPGAN")

    def place(method: str) -> int:
        return first.index(method) if method in first else len(first)

    return sorted(cells, key=lambda cell: (place(cell[0]), cell[0], cell[1] or 0.0))


def _honest(runs: list[Row], data: str, cell: Cell, score: str, *, other_epsilon: bool = False) -> str:
    """Mean (standard deviation) [steps × seeds]; at another ε, which is then named, where it was not run at this."""
    group = _longest(runs, data, cell, score)
    named = ""
    if not group and other_epsilon:
        others = {run["epsilon"] for run in runs if (run["data"], run["method"]) == (data, cell[0])} - {cell[1]}
        for epsilon in sorted(others, reverse=True):
            group = group or _longest(runs, data, (cell[0], epsilon), score)
            named = named or (f", ε = {epsilon:g}" if group else "")
    if not group:
        return NOT_RUN
    values = [run["scores"][score] for run in group]
    spread = statistics.stdev(values) if len(values) > 1 else group[0].get("spread", {}).get(score)
    seeds, steps = sum(run.get("seeds", 1) for run in group), group[0]["steps"]
    length = f"{steps:,} × {seeds}" if steps else f"{seeds}"
    shown = f"{statistics.mean(values):.2f}" + ("" if spread is None else f" ({spread:.2f})")
    return f"{shown} [{length}{named}]{EARLIER if 'seeds' in group[0] else ''}"


def _longest(runs: list[Row], data: str, cell: Cell, score: str | None = None) -> list[Row]:
    """All seeds of the longest run; an earlier one, of which only the mean is kept, where nothing as long is newer."""
    found = [run for run in runs if (run["data"], run["method"], run["epsilon"]) == (data, *cell)]
    found = [run for run in found if score is None or score in run["scores"]]
    most = max((run["steps"] for run in found), default=0)
    group = sorted((run for run in found if run["steps"] == most and "seeds" not in run), key=lambda run: run["seed"])
    return group or [run for run in found if run["steps"] == most][:1]
