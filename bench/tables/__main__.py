"""Any table, any methods, side by side in one run.

    python -m bench.tables --data FILE.csv --schema FILE.json [--target COL] [--test FILE.csv]
        [--methods marginals,idpgan,independent,real] [--epsilons 0.1,1,3,10] [--seeds 3] [--rows N] [--quick]

Every method gets the same training rows and δ = 1e-5 of one release, and is asked for as many rows as it was given (times
--times). Each run is a process of its own, so that its memory is its own. Writes bench/results/tables-NAME-DATE.{json,md,svg}.
"""

from __future__ import annotations

import argparse
import datetime as dt
from dataclasses import asdict
from pathlib import Path

from bench.tables.report import ROOT, write
from bench.tables.runs import Run, in_a_process


def main() -> None:
    arguments = _arguments()
    methods, epsilons = arguments.methods.split(","), [float(e) for e in arguments.epsilons.split(",")]
    runs: list[Run] = []
    for method in methods:
        asked: list[float | None] = [None] if method in {"real", "independent"} else [*epsilons]
        for epsilon in asked:
            for seed in range(1, (1 if epsilon is None else arguments.seeds) + 1):
                runs.append(in_a_process(arguments, method, epsilon, seed))
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
