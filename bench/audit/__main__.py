"""Attack every mechanism and set what could be proven beside what is claimed.

    python -m bench.audit [--quick] [--part mechanisms|outputs]
    python -m bench.audit --releases [--quick]
    python -m bench.audit --anonymeter SHARED
    python -m bench.audit --zip generator.zip --rows private.csv --schema schema.json [--held-out others.csv]

Writes bench/results/audit.{json,md}; a part alone keeps the other if it is of the same day. With both parts there, also
workers/audit_summary.json, which certificates quote. Everything runs on test seeds: the result is repeatable, and nothing made here could be published.
With --releases what is published is attacked instead, and the section `releases` of the page written; with --zip a generator that was
downloaded, by the rows it was made from: what is printed is not private.
Exit status 1 if a bound exceeds its claim, if the plain Gaussian step comes not within 20 %, or if what is broken is not found out.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from bench.audit import attacks, outputs
from bench.audit.attacks import DELTA, Finding
from bench.audit.outputs import OutputFinding, finite, summarised
from bench.audit.releases import anonymeter_beside, report
from bench.audit.releases.zip_page import page_of_zip
from bench.audit.summary import write_summary
from bench.pages import RESULTS, keep, today

KEPT = RESULTS / "audit.json"
NEAR_ENOUGH = 0.8


OUTPUT_TRIALS = 300_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.audit")
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials, writes nothing")
    parser.add_argument("--part", choices=("mechanisms", "outputs"), help="half of the attacks; default: all")
    parser.add_argument("--releases", action="store_true", help="attack synthetic rows and generators instead")
    parser.add_argument("--anonymeter", type=Path, metavar="SHARED", help="Anonymeter on Adult, from SHARED/adult")
    parser.add_argument(
        "--zip", type=Path, help="attack this generator, with the rows that it was made from; needs --rows and --schema"
    )
    parser.add_argument("--rows", type=Path, help="CSV of the rows")
    parser.add_argument("--schema", type=Path, help="their declared schema")
    parser.add_argument("--held-out", type=Path, help="CSV of rows of the same kind that it was not made from")
    arguments = parser.parse_args()
    if arguments.zip is not None:
        if arguments.rows is None or arguments.schema is None:
            parser.error("--zip needs --rows and --schema")
        print(page_of_zip(arguments.zip, arguments.rows, arguments.schema, arguments.held_out))
        return 0
    if arguments.anonymeter is not None:
        return 0 if anonymeter_beside.run(arguments.anonymeter) else 1
    if arguments.releases:
        return 0 if report.run(is_quick=arguments.quick) else 1
    share = 0.1 if arguments.quick else 1.0
    torch.set_num_threads(1)
    parts = {"mechanisms": mechanisms, "outputs": outputs_alone}
    held, found = [], {}
    for name, attack in parts.items():
        if arguments.part in {None, name}:
            started = time.monotonic()
            ok, sections = attack(share)
            held.append(ok)
            found |= {**sections, f"seconds_{name}": round(time.monotonic() - started, 1)}
            print(f"{name}: {found[f'seconds_{name}']:.0f} s, {'held' if ok else 'NOT HELD'}", flush=True)
    if not arguments.quick:
        write(found)
    return 0 if all(held) else 1


def mechanisms(share: float) -> tuple[bool, dict[str, Any]]:
    """Canaries in sums and counts, with the score that is best against a Gaussian; and the paper's thresholds."""

    def trials(full: int) -> int:
        return int(full * share)

    attempts: list[Callable[[], Finding]] = [
        lambda: attacks.plain_gaussian(trials(20_000)),
        lambda: attacks.sampled_steps(trials(2_500)),
        lambda: attacks.drawn_part(trials(6_000)),
        *(
            lambda allocation=allocation: attacks.groups_and_allocation(trials(6_000), allocation)
            for allocation in ("least_noise", "equal_share", "flat")
        ),
        lambda: attacks.histogram(trials(6_000)),
        lambda: attacks.label_counts(trials(10_000), rows_per_unit=1),
        lambda: attacks.label_counts(trials(10_000), rows_per_unit=4),
        lambda: attacks.short_run(trials(1_500)),
        lambda: attacks.record_canary(trials(6_000)),
        lambda: attacks.one_run(4_000, sampled=False),
        lambda: attacks.one_run(4_000, sampled=True),
        lambda: attacks.acts_one_batch(trials(5_000), 1.0),
        lambda: attacks.acts_one_batch(trials(5_000), 4.0),
        lambda: attacks.acts_ten_weights(trials(5_000)),
        lambda: attacks.acts_epochs(max(25, trials(100))),
    ]
    found: list[Finding] = []
    for attempt in attempts:
        found.append(attempt())
        print(row(found[-1]), flush=True)
    broken = [finding for finding in found if finding.name.startswith("ACTS")]
    ours = [finding for finding in found if not finding.name.startswith("ACTS")]
    held = all(finding.epsilon_lower <= finding.epsilon_claimed for finding in ours)
    held = held and ours[0].ratio >= NEAR_ENOUGH and all(finding.ratio > 1.0 for finding in broken)
    sections = {"ours": ours, "paper_acts": broken}
    return held, {name: [{**asdict(f), "ratio": f.ratio} for f in own] for name, own in sections.items()}


def outputs_alone(share: float) -> tuple[bool, dict[str, Any]]:
    """Events of outputs, for every kind of release; and the noise that was in use before."""
    found: dict[str, list[OutputFinding]] = {"outputs": [], "outputs_of_rounded_normals": []}
    trials = int(OUTPUT_TRIALS * share)
    for section, attempts in (
        ("outputs_of_rounded_normals", outputs.attempts_on_rounded_normals(trials)),
        ("outputs", outputs.attempts(trials)),
    ):
        for attempt in attempts:
            found[section].append(attempt())
            print(output_row(_as_json(found[section][-1])), flush=True)
    held = all(finding.proven <= finding.epsilon_claimed for finding in found["outputs"])
    held = held and all(finding.ratio > 1.0 for finding in found["outputs_of_rounded_normals"])
    return held, {section: [_as_json(finding) for finding in own] for section, own in found.items()}


def _as_json(finding: OutputFinding) -> dict[str, Any]:
    return {**asdict(finding), "proven": finite(finding.proven), "ratio": finite(finding.ratio)}


def row(finding: Finding) -> str:
    return mechanism_row({**asdict(finding), "ratio": finding.ratio})


def mechanism_row(finding: dict[str, Any]) -> str:
    direct = "" if finding["epsilon_direct"] is None else f"{finding['epsilon_direct']:.2f}"
    return (
        f"| {finding['name']} | {finding['trials']} | {finding['epsilon_claimed']:.2f} | {finding['epsilon_lower']:.2f} "
        f"| {finding['ratio']:.2f} | {direct} |"
    )


def output_row(finding: dict[str, Any]) -> str:
    ratio = "no ε" if finding["ratio"] is None else f"{finding['ratio']:.2f}"
    return (
        f"| {finding['kind']} | {finding['rows_per_unit']} | {finding['epsilon_claimed']:.2f} | {finding['epsilon_lower']:.2f} | {finding['event']} "
        f"| {finding['epsilon_direct']:.2f} | {finding['direct_event']} | {100.0 * finding['impossible_share']:.2f} % | {ratio} |"
    )


def ratios_by_epsilon(findings: list[dict[str, Any]]) -> str:
    """A line for each kind: ratios by ε, those of larger units after those of smaller ones."""
    by_kind: dict[str, dict[float, list[str]]] = {}
    for finding in findings:
        ratios = by_kind.setdefault(finding["kind"], {}).setdefault(finding["epsilon"], [])
        ratios.append("no ε" if finding["ratio"] is None else f"{finding['ratio']:.2f}")
    lines = [
        f"| {kind} | " + " | ".join(" · ".join(ratios.get(epsilon, [])) for epsilon in outputs.EPSILONS) + " |"
        for kind, ratios in by_kind.items()
        if outputs.EPSILONS[0] in ratios
    ]
    head = "| what | " + " | ".join(f"ε = {epsilon:g}" for epsilon in outputs.EPSILONS) + " |"
    return "\n".join([head, "|---|" + "---|" * len(outputs.EPSILONS), *lines])


def write(found: dict[str, Any]) -> None:
    """Today's result with what was found now in place of what was there."""
    date = today()
    document = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    if document.get("date") != date:
        document = {}
    machine = f"Python {platform.python_version()}, torch {torch.__version__.split('+')[0]}, one thread"
    document |= {"date": date, "machine": machine, "delta": DELTA, **found}
    KEPT.write_text(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")
    keep("audit", page_of(document))
    if {"ours", "outputs"} <= document.keys():
        write_summary(summarised(document))


def page_of(document: dict[str, Any]) -> str:
    """The result as Markdown, to stand under a heading."""
    seconds = ", ".join(
        f"{name} {document[f'seconds_{name}']:.0f} s"
        for name in ("mechanisms", "outputs")
        if f"seconds_{name}" in document
    )
    pieces = [
        f"`python -m bench.audit`: {seconds} on {document['machine']}; δ = {document['delta']:g}, 95 % confidence. How to read it: docs/audits.md.",
    ]
    head = "| what | trials | ε claimed | ε lower bound | ratio | direct bound |\n|---|---:|---:|---:|---:|---:|"
    for section, title in (
        ("ours", "Ours: no bound may exceed its claim"),
        ("paper_acts", "The paper's own ACTS: every bound exceeds its claim"),
    ):
        if section in document:
            pieces += [f"### {title}", "\n".join([head, *map(mechanism_row, document[section])])]
    head = (
        "| what | rows a unit | ε claimed | ε lower bound | event | direct bound | event | impossible outputs | ratio |\n"
        "|---|---:|---:|---:|---|---:|---|---:|---:|"
    )
    if "outputs" in document:
        pieces += [
            "### Outputs alone: ratios, of units of 1 · 10 · 1,000 rows",
            ratios_by_epsilon(document["outputs"]),
        ]
    for section, title in (
        ("outputs", "Outputs alone: nothing that is proven may exceed its claim"),
        ("outputs_of_rounded_normals", "Outputs of the noise that was in use until 2026-11-27: all exceed it"),
    ):
        if section in document:
            pieces += [f"### {title}", "\n".join([head, *map(output_row, document[section])])]
    return "\n\n".join(pieces) + "\n"


if __name__ == "__main__":
    sys.exit(main())
