"""A run as a section of bench/results/tables.md; beside it, not in the repository, as JSON and as a small picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from bench.pages import keep, run_file
from bench.tables.subgroups import section

ROOT = Path(__file__).parents[2]
COLUMNS = (
    "LR AUROC",
    "GB AUROC",
    "LR accuracy",
    "GB accuracy",
    "TV1",
    "TV2",
    "TV2 of all rows",
    "TV3",
    "value TV1",
    "value TV2",
    "GB AUROC on values",
    "correlation error",
    "rows breaking the schema",
    "neighbour ratio",
)
COLOURS = (
    "#0b6e99",
    "#d9730d",
    "#448361",
    "#9065b0",
    "#c14c8a",
    "#787774",
    "#337ea9",
    "#d44c47",
    "#4a6b1f",
    "#8a5a00",
    "#5b5fc7",
    "#a1336b",
)


def stored(name: str, date: str) -> Path:
    """The file that holds the runs of a day, one by one."""
    return run_file(f"tables-{name}-{date}.json")


def write(facts: dict[str, Any], *, page: bool) -> None:
    file = stored(facts["name"], facts["date"])
    file.write_text(json.dumps(facts, indent=1) + "\n")
    file.with_suffix(".svg").write_text(picture(facts))
    if page:
        keep("tables", markdown(facts), facts["name"])


def grouped(facts: dict[str, Any]) -> dict[tuple[str, float | None], list[dict[str, Any]]]:
    """Runs that gave rows, by method and ε."""
    groups: dict[tuple[str, float | None], list[dict[str, Any]]] = {}
    for run in facts["runs"]:
        if not run["metrics"]:
            continue
        groups.setdefault((run["method"], run["epsilon"]), []).append(run)
    return groups


def markdown(facts: dict[str, Any]) -> str:
    first = next((run["metrics"] for run in facts["runs"] if run["metrics"]), {})
    shown = [name for name in COLUMNS if name in first]
    lines = [
        (
            f"{facts['hardware']}; δ = {facts['delta']:g} of one release; {facts['times']} synthetic row(s) for each training row; "
            f"tested on {facts['test']}; at most {facts['limit']:.0f} s a run. [How to read it](../../docs/results.md#how-to-read-the-tables)."
        ),
        "",
        f"| method | ε | seeds | {' | '.join(shown)} | seconds | CPU s | MB |",
        f"|---|---|---|{'---|' * len(shown)}---|---|---|",
    ]
    for (method, epsilon), runs in grouped(facts).items():
        cells = [_cell([run["metrics"][name] for run in runs]) for name in shown]
        seconds, cpu = (np.mean([run.get(key, 0.0) for run in runs]) for key in ("seconds", "cpu_seconds"))
        cost = f"{seconds:.0f} | {cpu:.0f} | {max(run['megabytes'] for run in runs):.0f}"
        lines.append(f"| {method} | {_epsilon(epsilon)} | {len(runs)} | {' | '.join(cells)} | {cost} |")
    recalls = [name for name in first if "recall" in name]
    failed = [run for run in facts["runs"] if not run["metrics"]]
    lines += ["", "Without a result:", ""] if failed else []
    lines += [f"- {run['method']}, ε = {_epsilon(run['epsilon'])}, seed {run['seed']}: {run['why']}" for run in failed]
    if recalls:
        lines += [
            "",
            "Recall of each class:",
            "",
            f"| method | ε | {' | '.join(recalls)} |",
            f"|---|---|{'---|' * len(recalls)}",
        ]
        for (method, epsilon), runs in grouped(facts).items():
            cells = [_cell([run["metrics"].get(name, float("nan")) for run in runs]) for name in recalls]
            lines.append(f"| {method} | {_epsilon(epsilon)} | {' | '.join(cells)} |")
    lines += section((method, _epsilon(epsilon), runs) for (method, epsilon), runs in grouped(facts).items())
    return "\n".join(lines) + "\n"


def _epsilon(epsilon: float | None) -> str:
    """None: real rows, and what never reads a row under a budget."""
    return "–" if epsilon is None else f"{epsilon:g}"


def _cell(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.4f}"
    half = 1.96 * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.4f} ± {half:.4f}"


def picture(facts: dict[str, Any]) -> str:
    """GB AUROC over ε, one line for each method; methods without ε are dashed."""
    groups = grouped(facts)
    metric = "GB AUROC" if any("GB AUROC" in runs[0]["metrics"] for runs in groups.values()) else "TV2"
    means = {key: float(np.mean([r["metrics"][metric] for r in runs])) for key, runs in groups.items()}
    if not means:
        return '<svg xmlns="http://www.w3.org/2000/svg"/>\n'
    epsilons = sorted({epsilon for _, epsilon in means if epsilon is not None}) or [1.0]
    low, high = min(means.values()), max(means.values())
    low, high = low - 0.05 * (high - low + 1e-9), high + 0.05 * (high - low + 1e-9)

    def x(epsilon: float) -> float:
        span = np.log(epsilons[-1] / epsilons[0]) or 1.0
        return 70.0 + 400.0 * float(np.log(epsilon / epsilons[0]) / span)

    def y(value: float) -> float:
        return 260.0 - 220.0 * (value - low) / (high - low)

    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 310" font-family="sans-serif" font-size="12">',
        '<rect width="640" height="310" fill="white"/>',
        f'<text x="70" y="22" font-weight="bold">{facts["name"]}: {metric}, trained on synthetic rows</text>',
        '<path d="M70 40V260H470" fill="none" stroke="#999"/>',
    ]
    parts += [f'<text x="{x(e):.0f}" y="278" text-anchor="middle">{e:g}</text>' for e in epsilons]
    parts += ['<text x="270" y="298" text-anchor="middle">ε</text>']
    for value in np.linspace(low, high, 5):
        parts.append(f'<text x="64" y="{y(value) + 4:.0f}" text-anchor="end">{value:.3f}</text>')
    for place, method in enumerate(dict.fromkeys(method for method, _ in means)):
        colour = COLOURS[place % len(COLOURS)]
        points = [(x(e), y(means[method, e])) for e in epsilons if (method, e) in means]
        dash = ""
        if (method, None) in means:
            points, dash = [(70.0, y(means[method, None])), (470.0, y(means[method, None]))], ' stroke-dasharray="5 4"'
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        for px, py in points:
            parts.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>')
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="482" y="{56 + 18 * place}" fill="{colour}">{method}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
