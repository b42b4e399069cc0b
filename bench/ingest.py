"""How many rows a second an upload is taken in at, and in how much memory; beside it what one would take otherwise.

    python -m bench.ingest [--rows 10000000] [--runs 3] [--quick] [--folder DIR]

Each run is a process of its own. "Ours" is what the API does with an uploaded file: its child process checks every cell
against the schema, fingerprints the rows and writes the canonical table, and that is encrypted into storage; the clock
includes starting the child. Beside it, on the same file and interleaved:
    pandas       read_csv or read_parquet, then types, ranges, categories and missing values checked
    polars       read_csv or read_parquet with the declared types, nothing checked: the floor
"through HTTP" is a client's whole upload to a service on this machine, the transfer over loopback included.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import resource
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.environments import interpreter_with
from bench.ingest_tables import ADULT, NARROW, UNITS, Kind
from bench.pages import keep

PANDAS = ["pandas==3.1.1", "pyarrow==26.0.1"]
MiB = 2**20


@dataclass(frozen=True)
class Run:
    """One measured run; memory is the peak of the process that did the work, libraries included."""

    seconds: float
    cpu_seconds: float
    memory_bytes: int
    own_memory_bytes: int = 0
    """Ours only: the peak of the process that stands for the API."""


@dataclass
class Row:
    """One line of the table."""

    kind: str
    form: str
    what: str
    rows: int
    runs: list[Run] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="300,000 rows, one run, no file of results")
    parser.add_argument("--folder", type=Path, help="where the tables lie (some 3 GB); kept if given")
    arguments = parser.parse_args()
    rows, runs = (300_000, 1) if arguments.quick else (arguments.rows, arguments.runs)
    pandas = interpreter_with("pandas", PANDAS)
    with tempfile.TemporaryDirectory(prefix="imprimatur-bench-") as scratch:
        folder = arguments.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        lines = [line for kind in (ADULT, NARROW, UNITS) for line in measure(kind, folder, rows, runs, pandas)]
        lines += through_http(folder, rows, runs)
    text = report(lines, rows, runs)
    print(text)
    if not arguments.quick:
        keep("ingest", text)


def measure(kind: Kind, folder: Path, rows: int, runs: int, pandas: Path | None) -> list[Row]:
    """All ways, in turns, for both forms of one table."""
    lines = []
    schema = folder / "schema.json"
    schema.write_text(json.dumps(kind.schema), encoding="utf-8")
    for form in ("csv", "parquet"):
        path = kind.write(folder, rows, parquet=form == "parquet")
        ways: dict[str, Callable[[], Run]] = {"ours": lambda path=path: _apart(ours, path, kind)}
        if not kind.units:
            if pandas is not None:
                ways["pandas, checked"] = lambda path=path: _with_pandas(pandas, path, schema)
            ways["polars, unchecked"] = lambda path=path: _apart(polars_floor, path, kind)
        made = {what: Row(kind.name, form, what, rows) for what in ways}
        for _ in range(runs):
            for what, way in ways.items():
                made[what].runs.append(way())
                print(kind.name, form, what, f"{rows / made[what].runs[-1].seconds:,.0f} rows/s", flush=True)
        lines += made.values()
    return lines


def ours(path: Path, kind: Kind) -> Run:
    """Check, fingerprint, make canonical, encrypt into storage. Runs in a fresh process, as a thread of the API would."""
    from service.domain.privacy_unit import parse_privacy_unit
    from service.domain.table_schema import parse_table_schema
    from service.intake.ingest import ingest_table
    from service.intake.limits import IngestLimits
    from service.intake.sealed import SealedFile
    from service.platform.crypto import encrypt
    from service.platform.storage import Storage

    unit = None if kind.privacy_unit is None else parse_privacy_unit(kind.privacy_unit)
    with tempfile.TemporaryDirectory(dir=path.parent) as name:
        workdir = Path(name)
        storage = Storage.from_url((workdir / "objects").as_uri())
        upload = SealedFile.create(workdir)  # as the API holds it when the body has ended
        with path.open("rb") as file:
            while piece := file.read(MiB):
                upload.append(piece)
        began, cpu_began = time.perf_counter(), _cpu_seconds()
        with ingest_table(
            upload,
            parse_table_schema(kind.schema),
            privacy_unit=unit,
            limits=IngestLimits(memory_bytes=4096 * MiB),
            scratch_dir=workdir,
            fingerprint_key=os.urandom(32),
        ) as table:
            storage.put("rows", encrypt(table.canonical.pieces(), os.urandom(32)))
        seconds, cpu_seconds = time.perf_counter() - began, _cpu_seconds() - cpu_began
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return Run(seconds, cpu_seconds, child, _peak_bytes())


def polars_floor(path: Path, kind: Kind) -> Run:
    """The whole table in memory, typed, unchecked."""
    import polars as pl

    began, cpu_began = time.perf_counter(), _cpu_seconds()
    if path.suffix == ".parquet":
        pl.read_parquet(path)
    else:
        types = {f["name"]: pl.String() if f["type"] == "string" else pl.Int64() for f in kind.schema["fields"]}
        pl.read_csv(path, schema_overrides=types)
    seconds, cpu_seconds = time.perf_counter() - began, _cpu_seconds() - cpu_began
    return Run(seconds, cpu_seconds, _peak_bytes())


def _peak_bytes() -> int:
    """Largest resident memory of this process; ru_maxrss would count the process that started it too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _cpu_seconds() -> float:
    """Of this process and the children it has waited for."""
    return sum(os.times()[:4])


def through_http(folder: Path, rows: int, runs: int) -> list[Row]:
    """A client's upload to a whole service; the API's peak memory while it takes it in."""
    from imprimatur import Client
    from service.local import EmbeddedStack

    environment = {"IMPRIMATUR_UPLOAD_LIMIT_BYTES": str(1 << 34)}
    lines = []
    with EmbeddedStack(folder / "service", 0, extra_environment=environment) as stack:
        client = Client(stack.url, stack.admin_key)
        for more, form in ((1, "csv"), (1 + runs, "parquet")):  # each upload needs rows of its own
            line = Row(ADULT.name, form, "ours, through HTTP", rows)
            for run in range(runs):
                path = ADULT.write(folder, rows + more + run, parquet=form == "parquet")
                peak = _Peak(stack.pids["api"])
                began = time.perf_counter()
                phases: dict[str, float] = {}
                with peak:
                    made = client.create_dataset(
                        path,
                        ADULT.schema,
                        epsilon=1.0,
                        on_progress=lambda phase, _, p=phases: p.setdefault(phase, time.perf_counter()),
                    )
                seconds = time.perf_counter() - began
                client.erase_dataset(made["id"])
                path.unlink()
                line.runs.append(Run(seconds, 0.0, peak.child_bytes, peak.bytes))
                print(
                    ADULT.name,
                    form,
                    line.what,
                    f"{rows / seconds:,.0f} rows/s",
                    {k: f"{v - began:.1f} s" for k, v in phases.items()},
                    flush=True,
                )
            lines.append(line)
    return lines


def report(lines: list[Row], rows: int, runs: int) -> str:
    """A page of results."""
    head = [
        f"`python -m bench.ingest --rows {rows} --runs {runs}`; {machine()}. Median of the runs, and their extremes.",
        "Peak memory of the working process, its libraries included; behind the +, of the API's.",
        "",
        "| table | form | way | rows/s | from - to | CPU s per million rows | MiB |",
        "|---|---|---|---|---|---|---|",
    ]
    body = []
    for line in lines:
        speeds = sorted(line.rows / run.seconds for run in line.runs)
        memory = f"{max(run.memory_bytes for run in line.runs) / MiB:,.0f}"
        own = max(run.own_memory_bytes for run in line.runs)
        if own:
            memory += f" + {own / MiB:,.0f}"
        cpu = statistics.median(run.cpu_seconds for run in line.runs) / line.rows * 1e6
        middle = statistics.median(speeds)
        span = f"{speeds[0]:,.0f} - {speeds[-1]:,.0f}"
        body.append(
            f"| {line.kind} | {line.form} | {line.what} | {middle:,.0f} | {span} | {f'{cpu:.2f}' if cpu else ''} | {memory} |"
        )
    return "\n".join([*head, *body]) + "\n"


def machine() -> str:
    """The hardware, and how busy it was."""
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )


class _Peak:
    """The largest resident memory of a process, and of its children, while the block lasts."""

    def __init__(self, pid: int) -> None:
        self.bytes = self.child_bytes = 0
        self._process = psutil.Process(pid)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.1):
            with suppress(psutil.Error):
                self.bytes = max(self.bytes, self._process.memory_info().rss)
                children = [child.memory_info().rss for child in self._process.children(recursive=True)]
                self.child_bytes = max([self.child_bytes, *children])


def _apart(function: Callable[[Path, Kind], Run], path: Path, kind: Kind) -> Run:
    """The function's result from a process that has done nothing else."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, path, kind).result()


def _with_pandas(python: Path, path: Path, schema: Path) -> Run:
    script = Path(__file__).with_name("ingest_pandas.py")
    found = subprocess.run([python, "-I", script, path, schema], check=True, capture_output=True, text=True)
    answer = json.loads(found.stdout)
    return Run(answer["seconds"], answer["cpu_seconds"], answer["memory_bytes"])


if __name__ == "__main__":
    main()
