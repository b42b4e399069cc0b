"""All attacks on releases, and the section of bench/results/audit.md that they fill: `python -m bench.audit --releases`."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import replace

import sklearn
import torch

from bench.audit.releases import images
from bench.audit.releases.game import Played, play
from bench.audit.releases.making import DELTA, SLOTS, UNITS, WIDTHS, Maker, idpgan, marginals
from bench.audit.releases.verdicts import Finding
from bench.pages import keep

SECTION, SECTION_OF_IMAGES = "releases", "releases of images"
BROKEN = ("shadow membership", "likelihood", "exposure", "poisoning")
"""What must break the control of marginals: each at its easiest target."""
FEWEST_OF_A_CONTROL = 30
"""With fewer releases, two copies of a row cannot be proven to be beyond their price."""
HEAD = (
    "| attack | on | runs | advantage | at least | at most, by the price | ε paid | ε lower bound | a copy and release |\n"
    "|---|---|---:|---:|---:|---:|---:|---:|---:|"
)


def makers(*, is_quick: bool) -> list[tuple[Maker, int]]:
    """Who is attacked, and releases in each world."""
    runs, of_a_network = (15, 5) if is_quick else (60, 20)
    return [
        (marginals(1.0), runs),
        (marginals(is_control=True), max(runs, FEWEST_OF_A_CONTROL)),
        (marginals(8.0), runs),
        (marginals(1.0, name="marginals with default pairs, ε = 1", pairs="auto"), runs),
        (idpgan(8.0), of_a_network),
        (idpgan(is_control=True), of_a_network),
    ]


def is_network(maker: Maker) -> bool:
    """Whether the maker trains networks, which take several times as long and are attacked with fewer releases."""
    return maker.order["method"] != "marginals"


def run(*, is_quick: bool) -> bool:
    """Whether nothing is beyond its price, and the control is broken. The page is written after each maker, but for quick runs."""
    torch.set_num_threads(1)
    done: list[tuple[Maker, int, Played, float]] = []
    for maker, runs in makers(is_quick=is_quick):
        started = time.process_time()
        played = play(maker, runs, is_short=is_network(maker))
        done.append((maker, runs, played, time.process_time() - started))
        print(part_of(*done[-1]), flush=True)
        if not is_quick:
            keep("audit", page(done), SECTION)
    of_images = run_images(is_quick=is_quick)
    return of_images and all(holds(maker, played) for maker, _, played, _ in done)


def run_images(*, is_quick: bool) -> bool:
    """The attacks on releases of images; returns whether nothing private is beyond its price."""
    runs, started = (6 if is_quick else 20), time.process_time()
    findings = [
        images.attack(epsilon, runs, is_control=is_control) for epsilon, is_control in ((1.0, False), (1.0, True))
    ]
    seconds = time.process_time() - started
    head = f"`python -m bench.audit --releases`: {images.UNITS} digits of 8 x 8 pixels, {runs} releases a world, {seconds:.0f} s of one thread."
    lines = [HEAD.replace("| attack |", "| made by |"), *(row(replace(one, attack=one.made_by)) for one in findings)]
    text = "\n".join([head, "", *lines]) + "\n"
    print(text, flush=True)
    if not is_quick:
        keep("audit", text, SECTION_OF_IMAGES)
    return not any(one.is_beyond_its_price for one in findings if not one.is_control)


def holds(maker: Maker, played: Played) -> bool:
    """Of a control whether it is broken; a network of a few steps without noise need not be: it has hardly learned."""
    if not maker.is_control:
        return not any(finding.is_beyond_its_price for finding in played.findings)
    return "marginals" not in maker.name or not unbroken(played.findings)


def unbroken(findings: Sequence[Finding]) -> list[str]:
    """The attacks that must break a control and did not."""
    broken = {finding.attack for finding in findings if finding.is_beyond_its_price}
    return [attack for attack in BROKEN if attack not in broken]


def page(done: Sequence[tuple[Maker, int, Played, float]]) -> str:
    """The section."""
    seconds = sum(one[3] for one in done)
    beyond = sum(
        finding.is_beyond_its_price
        for maker, _, played, _ in done
        for finding in played.findings
        if not maker.is_control
    )
    head = (
        f"`python -m bench.audit --releases`: {seconds:.0f} s of one thread ({platform.machine()}, Python {platform.python_version()}, "
        f"torch {torch.__version__.split('+')[0]}, scikit-learn {sklearn.__version__}). A made-up table of {UNITS} units ({SLOTS} of them null) "
        f"and {len(WIDTHS)} columns; δ = {DELTA:g}; limits hold with 95 % each. How to read it: docs/audits.md. "
        f"Bounds of private releases beyond their price: {beyond}."
    )
    return "\n\n".join([head, *(part_of(*one) for one in done)]) + "\n"


def part_of(maker: Maker, runs: int, played: Played, seconds: float) -> str:
    """The part of the page about one maker."""
    title = f"### {maker.name}: {runs} releases a world, {seconds:.0f} s"
    if maker.is_control:
        title += f", judged as if sold at ε = {maker.epsilon:g}"
    bits = "; ".join(
        f"{'not planted' if k == 0 else f'{k} ' + ('copy' if k == 1 else 'copies')} {one.mean:.2f} ± {one.half_width:.2f} (by log p alone {one.plain_bits.mean():.2f})"
        + ("" if k == 0 or maker.is_control else f", at most {one.most_mean:.2f}")
        for k, one in played.exposures.items()
    )
    read, even = played.class_means
    exposures = f"Mean exposure, bits: {bits}. " if bits else ""
    statistics = (
        f"{exposures}Columns of each class of `income`, read off a generator: {100 * read:.0f} % off "
        f"(total variation; evenly spread: {100 * even:.0f} %)."
    )
    return "\n\n".join([title, "\n".join([HEAD, *map(row, played.findings)]), statistics])


def row(finding: Finding) -> str:
    """A line of the table."""
    mark = " **beyond**" if finding.is_beyond_its_price else ""
    return (
        f"| {finding.attack}{mark} | {finding.target} | {finding.runs} | {finding.advantage:.2f} | {finding.advantage_lower:.2f} "
        f"| {finding.price.most_advantage:.2f} | {finding.price.whole_epsilon:.2f} | {finding.epsilon_lower:.2f} | {finding.epsilon_of_a_copy:.2f} |"
    )
