"""Any tables, any methods, side by side in one run.

    python -m bench.tables [--tables adult,poker,breast_cancer,digits] [--shared FOLDER]
        [--methods real,independent,marginals,...] [--epsilons 0.1,1,3,10] [--seeds 3] [--peer-seeds 1] [--limit SECONDS] [--record] [--resume] [--quick]
    python -m bench.tables --data FILE.csv --schema FILE.json [--target COL] [--test FILE.csv]

Every method gets the same training rows, the same public cells and the same δ of one release (--delta; default: half of what the service
gives a dataset of so many rows), and is asked for as many rows as it was given, times --times. Each run is a process of its own, so that its memory is its own; a run that fails or takes longer than --limit
stays in the result, with the reason. Other people's methods get an environment of their own at their first run.
Writes the section NAME of bench/results/tables.md after every run, and bench/runs/tables-NAME-DATE.{json,svg}, which are not in the
repository; --resume leaves out what today's file has already. With --record, runs of a table that methods are compared on go to
bench/results/peers.csv instead, at its δ and with one synthetic row for each real one; bench.tables.beside reads that file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from dataclasses import asdict
from pathlib import Path

from bench.pages import today
from bench.tables.methods import METHODS, NEEDS_NO_EPSILON
from bench.tables.peers import PEERS
from bench.tables.records import COMPARED, RECORDED_DELTA, take
from bench.tables.report import ROOT, stored, write
from bench.tables.runs import Run, Settings, in_a_process
from bench.tables.sources import MAKERS, Source, source
from bench.tables.tables import read_table
from service.privacy.statements import default_delta


def main() -> None:
    asked = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        if asked.data is not None:
            _run_table(asked, asked.name or asked.data.stem, Source(asked.data, asked.schema, asked.test))
            return
        tables = asked.tables.split(",")
        if asked.name and len(tables) > 1:
            raise SystemExit("--name is that of one table: give one of --tables, or --data")
        for name in tables:
            found = source(name, Path(folder), asked.shared)
            if found is None:
                print(f"{name}: SKIPPED, its data is not in {asked.shared}", flush=True)
            else:
                _run_table(asked, asked.name or name, found)


def _run_table(asked: argparse.Namespace, name: str, files: Source) -> None:
    if asked.record and name not in COMPARED:
        raise SystemExit(f"{name} is not one of the tables of bench/tables/compared.py")
    delta = asked.delta or release_delta(asked, files)
    settings = Settings(files.data, files.schema, files.test, asked.target, asked.rows, asked.times, delta)
    date = today()
    earlier = stored(name, date)
    before = json.loads(earlier.read_text()) if asked.resume and earlier.exists() else {}
    if before and (before["delta"], before["times"]) != (delta, asked.times):
        raise SystemExit(
            f"{earlier.name} holds other runs; resume it with --delta {before['delta']} --times {before['times']}"
        )
    facts = {
        "name": name,
        "date": date,
        "hardware": f"{os.cpu_count()} cores ({platform.machine()})",
        "delta": delta,
        "times": asked.times,
        "limit": asked.limit,
        "test": "a held-out fifth" if files.test is None else files.test.name,
    }
    runs = [Run(**run) for run in before.get("runs", [])]
    done = {(run.method, run.epsilon, run.seed) for run in runs}
    for method, epsilon, seed in _wanted(asked):
        if (method, epsilon, seed) in done:
            continue
        runs.append(in_a_process(settings, method, epsilon, seed, json.loads(asked.knobs), asked.limit))
        shown = runs[-1].why or {key: round(value, 4) for key, value in list(runs[-1].metrics.items())[:7]}
        print(f"{name}: {method}, ε {epsilon}, seed {seed}: {shown} in {runs[-1].seconds:.0f} s", flush=True)
        if not asked.quick:
            write(facts | {"runs": [asdict(run) for run in runs]}, page=not asked.record)
    if asked.record and not asked.quick:  # once all seeds are there: they replace those on record
        take(name, facts | {"runs": [asdict(run) for run in runs]})


def release_delta(asked: argparse.Namespace, files: Source) -> float:
    """What a release of the whole budget has where the owner names no δ: half of the dataset's."""
    table = read_table(files.data, files.schema, asked.target, files.test, asked.rows)
    return default_delta(len(table.train)) / 2.0


def _wanted(asked: argparse.Namespace) -> list[tuple[str, float | None, int]]:
    wanted: list[tuple[str, float | None, int]] = []
    for method in asked.methods.split(","):
        epsilons: list[float | None] = [float(text) for text in asked.epsilons.split(",")]
        for epsilon in [None] if method in NEEDS_NO_EPSILON else epsilons:
            seeds = asked.peer_seeds if method in PEERS else asked.seeds if epsilon is not None else 1
            wanted += [(method, epsilon, seed) for seed in range(1, seeds + 1)]
    return wanted


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default="adult,poker,breast_cancer,digits", help=f"of {', '.join(MAKERS)}")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared" / "data", help="where UCI's files are")
    parser.add_argument("--data", type=Path, help="a table of your own instead")
    parser.add_argument("--schema", type=Path)
    parser.add_argument("--name", help="of the section and the files; default: that of the data")
    parser.add_argument("--target")
    parser.add_argument("--test", type=Path)
    parser.add_argument("--methods", default=",".join(method for method in METHODS if method != "auto"))
    parser.add_argument("--epsilons", default="0.1,1,3,10")
    parser.add_argument("--seeds", type=int, default=3, help="for ours")
    parser.add_argument("--peer-seeds", type=int, default=1, help="for other people's methods, which take long")
    parser.add_argument("--rows", type=int, help="train on the first N rows only")
    parser.add_argument("--times", type=int, default=4, help="synthetic rows for each real one; drawing costs nothing")
    parser.add_argument("--delta", type=float, help=f"of one release; on record are runs at {RECORDED_DELTA:g}")
    parser.add_argument("--limit", type=float, default=1_200.0, help="seconds for one run, scoring included")
    parser.add_argument("--knobs", default="{}", help="JSON: knobs for marginals, idpgan and dpgan")
    parser.add_argument("--record", action="store_true", help="put the runs on record beside other people's methods")
    parser.add_argument("--resume", action="store_true", help="keep what today's file has")
    parser.add_argument(
        "--quick", action="store_true", help="one small table, one ε, one seed, ours only; writes nothing"
    )
    asked = parser.parse_args()
    if asked.quick:
        asked.tables, asked.epsilons, asked.seeds = "breast_cancer", "1", 1
        asked.methods = "real,independent,marginals"
    if asked.record:
        asked.times, asked.delta = 1, RECORDED_DELTA
    return asked


if __name__ == "__main__":
    main()
