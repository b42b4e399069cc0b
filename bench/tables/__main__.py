"""Any table, any methods, side by side in one run.

    python -m bench.tables --data FILE.csv --schema FILE.json [--target COL] [--test FILE.csv]
        [--methods marginals,idpgan,independent,real] [--epsilons 0.1,1,3,10] [--seeds 3] [--rows N] [--quick]

Every method gets the same training rows and δ = 1e-5 of one release, and is asked for as many rows as it was given (times
--times). Each run is a process of its own, so that its memory is its own. Writes bench/results/tables-NAME-DATE.{json,md,svg}.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import multiprocessing
import resource
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.tables.report import ROOT, write


@dataclass(frozen=True)
class Run:
    """One method at one ε with one seed: what was asked, what came out."""

    method: str
    epsilon: float | None
    seed: int
    metrics: dict[str, float]
    seconds: float
    megabytes: float


def main() -> None:
    arguments = _arguments()
    methods, epsilons = arguments.methods.split(","), [float(e) for e in arguments.epsilons.split(",")]
    runs: list[Run] = []
    for method in methods:
        asked: list[float | None] = [None] if method in {"real", "independent"} else [*epsilons]
        for epsilon in asked:
            for seed in range(1, (1 if epsilon is None else arguments.seeds) + 1):
                runs.append(_in_a_process(arguments, method, epsilon, seed))
                shown = {name: round(value, 4) for name, value in list(runs[-1].metrics.items())[:7]}
                print(f"{method}, ε {epsilon}, seed {seed}: {shown} in {runs[-1].seconds:.0f} s", flush=True)
                _write(arguments, runs)


def _write(arguments: argparse.Namespace, runs: list[Run]) -> None:
    facts = {
        "name": arguments.name or arguments.data.stem,
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "delta": arguments.delta,
        "times": arguments.times,
        "test": "a held-out fifth" if arguments.test is None else arguments.test.name,
        "runs": [asdict(run) for run in runs],
    }
    write(facts)


def _in_a_process(arguments: argparse.Namespace, method: str, epsilon: float | None, seed: int) -> Run:
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(sending, arguments, method, epsilon, seed))
    process.start()
    sending.close()
    try:
        run: Run = receiving.recv()
    except EOFError:
        raise SystemExit(f"{method} at ε = {epsilon} failed; see above") from None
    process.join()
    return run


def _run(sending: Any, arguments: argparse.Namespace, method: str, epsilon: float | None, seed: int) -> None:
    from bench.tables import metrics
    from bench.tables.methods import METHODS, Ask
    from bench.tables.tables import codes_of, read_table

    table = read_table(arguments.data, arguments.schema, arguments.target, arguments.test, arguments.rows)
    knobs = json.loads(arguments.knobs) if method in {"marginals", "idpgan"} else {}
    rows = len(table.train) * arguments.times
    ask = Ask(table, epsilon or 1.0, arguments.delta, rows, seed, knobs)
    frame, seconds = METHODS[method](ask)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    started = time.monotonic()
    synthetic, train, widths = codes_of(frame, table.domain), table.train_codes, table.domain.widths
    same = synthetic[: len(train)]  # distances of tables shrink with more rows: as many as there are real ones
    found = metrics.classifier_scores(synthetic, table)
    heads = {name: value for name, value in found.items() if "recall" not in name}
    measured = {
        **heads,
        **{f"TV{ways}": metrics.total_variation(same, train, widths, ways) for ways in (1, 2, 3)},
        "correlation error": metrics.correlation_error(same, train),
        "rows breaking the schema": metrics.breaking_share(frame, table.schema),
        "neighbour ratio": metrics.nearest_neighbour_ratio(synthetic, table),
        **found,
    }
    print(f"scored in {time.monotonic() - started:.0f} s", flush=True)
    sending.send(Run(method, epsilon, seed, measured, seconds, peak / 1024))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT / "examples" / "poker_hand.csv")
    parser.add_argument("--schema", type=Path, default=ROOT / "examples" / "poker_hand.schema.json")
    parser.add_argument("--name", help="of the result files; default: that of the data")
    parser.add_argument("--target")
    parser.add_argument("--test", type=Path)
    parser.add_argument("--methods", default="marginals,idpgan,independent,real")
    parser.add_argument("--epsilons", default="0.1,1,3,10")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, help="train on the first N rows only")
    parser.add_argument("--times", type=int, default=1, help="synthetic rows for each real one; drawing costs nothing")
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--knobs", default="{}", help="JSON: knobs for marginals and idpgan")
    parser.add_argument("--quick", action="store_true", help="one ε, one seed")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.epsilons, arguments.seeds = "1", 1
    return arguments


if __name__ == "__main__":
    main()
