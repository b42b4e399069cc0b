"""The quarter of an hour of a GPU, at a tiny size: every setting trains, results are written run by run, and the clock ends it."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bench import endings, images_gpu, paces
from bench.engines_off import engines_off
from bench.image_data import Digits, load
from bench.images_gpu import LEAST_SECONDS, SETTINGS, Asked, run_all, runs_of
from bench.paces import PROBED, Pace
from service.methods.catalogue import parse_order
from workers.methods.idpgan import mixture_samples

CPU = torch.device("cpu")


def make_data(count: int = 300) -> Digits:
    rng = np.random.default_rng(0)
    labels = np.arange(count) % 10
    images = np.clip(rng.integers(0, 60, (count, 12, 12)) + 20 * labels[:, None, None], 0, 255).astype(np.uint8)
    return Digits(images, labels, images[:100], labels[:100])


@pytest.fixture(autouse=True)
def _few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixture_samples, "free_samples", lambda _pixels: 300)


def asked(out: Path, **more: object) -> Asked:
    sizes: dict[str, object] = {
        "minutes": 10.0,
        "count": 200,
        "epochs": 1,
        "most_steps": 2,
        "most_batch": 8,
        "seeds": 1,
        "device": CPU,
    }
    sizes["began"] = time.monotonic()
    return Asked(out=out, **(sizes | more))  # type: ignore[arg-type]


@pytest.mark.slow
def test_every_setting_is_an_order_trains_and_is_written_at_once(tmp_path: Path) -> None:
    for setting in SETTINGS.values():
        parse_order({"method": "idpgan", "epsilon": 1.0, **setting.knobs})
    # Convolutions are the slow ones on a CPU: one of the two is enough.
    names = [name for name in SETTINGS if name != "free samples, wide convolutions"]
    done = run_all({"tiny": make_data()}, [("tiny", 5.0, name) for name in names], asked(tmp_path))
    assert [one.setting for one in done] == names
    assert {(one.planned, one.taken) for one in done} == {(2, 2)}
    lines = [json.loads(line) for line in (tmp_path / "images_gpu.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["setting"] for line in lines] == names
    table = (tmp_path / "images_gpu.md").read_text(encoding="utf-8")
    for name in names:
        assert table.count(f"| tiny | 5 | {name} | 8 |") == 1


def test_a_run_takes_as_many_steps_as_its_time_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images_gpu, "pace_of", lambda *_: Pace(0.0, 0.0, 8.0))
    # The clock stands still: on a busy machine what comes before the steps takes seconds.
    monkeypatch.setattr(images_gpu, "time", SimpleNamespace(monotonic=lambda: 0.0, process_time=time.process_time))
    done = run_all(
        {"tiny": make_data()}, [("tiny", 5.0, "as today")], asked(tmp_path, most_steps=50, minutes=2.0, began=0.0)
    )
    assert done[0].planned == 11  # nine tenths of the hundred seconds that scoring leaves
    assert done[0].taken == 11


def test_the_clock_ends_everything_and_what_ended_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_all({"tiny": make_data()}, [("tiny", 5.0, "as today")], asked(tmp_path))[0]
    ran: list[str] = []

    def slow(*_: object) -> images_gpu.Done:
        ran.append("begun")
        if len(ran) == 1:
            return first
        while True:
            time.sleep(0.01)

    monkeypatch.setattr(images_gpu, "run_one", slow)
    monkeypatch.setattr(images_gpu, "LEAST_SECONDS", 1e-6)
    monkeypatch.setattr(images_gpu, "engines_off", lambda _device: {})
    monkeypatch.setattr(images_gpu, "train_classifier", lambda *_, **__: None)
    runs = [("tiny", 5.0, "as today")] * 3
    done = run_all({"tiny": make_data()}, runs, asked(tmp_path, minutes=0.03))
    assert done == [first]
    assert len(ran) == 2
    assert len((tmp_path / "images_gpu.jsonl").read_text(encoding="utf-8").splitlines()) == 2


def test_nothing_is_trained_on_a_device_whose_engines_are_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    off = engines_off(CPU)
    assert set(off) == {"perceptron", "perceptron, copies", "convolutions"}
    assert max(off.values()) < 1e-5
    for wrong in (0.5, float("nan")):
        monkeypatch.setattr(images_gpu, "engines_off", lambda _device, wrong=wrong: {"perceptron": wrong})
        with pytest.raises(RuntimeError, match="not those of the CPU"):
            run_all({"tiny": make_data()}, [("tiny", 5.0, "as today")], asked(tmp_path))
    assert not list(tmp_path.iterdir())


def test_the_most_promising_order_comes_first_of_all_data_and_no_run_has_too_little_time(tmp_path: Path) -> None:
    names, epsilons, first = ["mnist", "fashion_mnist"], [10.0, 1.0], next(iter(SETTINGS))
    quarter = runs_of(names, epsilons, list(SETTINGS), asked(tmp_path, minutes=14.0))
    assert quarter[:4] == [(name, epsilon, first) for name in names for epsilon in epsilons]
    assert 60.0 * 14.0 / len(quarter) >= LEAST_SECONDS
    assert len(runs_of(["mnist"], [10.0], list(SETTINGS), asked(tmp_path, minutes=14.0))) == len(SETTINGS)
    assert len(runs_of(names, epsilons, list(SETTINGS), asked(tmp_path, minutes=60.0))) == 4 * len(SETTINGS)


def test_first_steps_that_take_long_do_not_count_when_a_step_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    now, taken = [0.0], []

    def take() -> None:
        taken.append(1)
        now[0] += 30.0 if len(taken) <= 4 else 0.5  # a GPU records what it replays afterwards

    monkeypatch.setattr(paces, "time", SimpleNamespace(monotonic=lambda: now[0]))
    assert paces.usual_seconds(take, CPU) == 0.5
    assert len(taken) == 1 + PROBED


def process_of(
    commands: list[list[str]], *, waits: Callable[[], object] = int, killed: list[str] | None = None
) -> type:
    """A process that has written one run and, after it, a line that was broken off."""

    class Process:
        def __init__(self, command: list[str]) -> None:
            commands.append(command)
            given = dict(pairwise(command))
            self.out, epsilon = Path(given["--out"]), float(given["--epsilons"])
            self.out.mkdir(parents=True)
            done = images_gpu.Done(given["--names"], "as today", epsilon, 0, 8, 2, 2, 2, 1.0, 80.0 + epsilon, 3.0, 1.0)
            line = json.dumps(done.__dict__)
            (self.out / "images_gpu.jsonl").write_text(f'{{"data": 1}}\n{line}\n{line[:40]}', encoding="utf-8")

        def wait(self) -> int:
            waits()
            return 0

        def kill(self) -> None:
            if killed is not None:
                killed.append(self.out.name)

    return Process


def test_a_process_for_each_data_set_and_epsilon_and_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(images_gpu.subprocess, "Popen", process_of(commands))
    monkeypatch.setattr(images_gpu.os, "sched_getaffinity", lambda _process: set(range(8)))
    words = ["--beside", "--names", "mnist", "fashion_mnist", "--out", str(tmp_path), "--minutes", "9"]
    monkeypatch.setattr(images_gpu.sys, "argv", ["images_gpu", *words])
    images_gpu.main()
    assert len(commands) == 4
    table = (tmp_path / "images_gpu.md").read_text(encoding="utf-8")
    for name in ("mnist", "fashion_mnist"):
        assert f"| {name} | 10 | as today | 8 | 2 | 2 | 1.0 | 90.0 |" in table
        assert f"| {name} | 1 | as today | 8 | 2 | 2 | 1.0 | 81.0 |" in table
    # Each takes what it is given.
    monkeypatch.setattr(images_gpu.sys, "argv", commands[0][2:])
    given = images_gpu._arguments()
    assert (given.names, given.epsilons, given.minutes, given.beside) == (["mnist"], [10.0], 9.0, False)
    assert given.threads == 2, "of eight cores that it may use"
    assert given.began < time.monotonic()
    assert "--began" not in images_gpu._without_paths(commands[0])


def test_sigterm_ends_all_processes_and_the_table_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[str] = []
    end = partial(os.kill, os.getpid(), signal.SIGTERM)
    monkeypatch.setattr(images_gpu.subprocess, "Popen", process_of([], waits=end, killed=killed))
    monkeypatch.setattr(images_gpu.sys, "argv", ["images_gpu", "--beside", "--out", str(tmp_path)])
    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, lambda *_: pytest.fail("nothing in the bench took it"))
        with pytest.raises(SystemExit) as ended:
            images_gpu.main()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 128 + signal.SIGTERM
    assert len(killed) == 4
    assert (tmp_path / "images_gpu.md").read_text(encoding="utf-8").count("| as today |") == 4


def test_the_clock_counts_from_the_start_of_the_process_and_loading_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Asked] = []
    monkeypatch.setattr(images_gpu, "age_seconds", lambda: 100.0)
    monkeypatch.setattr(images_gpu, "_here", lambda _given, asked: found.append(asked) or [])
    monkeypatch.setattr(images_gpu.sys, "argv", ["images_gpu", "--minutes", "9"])
    images_gpu.main()
    assert found[0].left <= 9 * 60.0 - 100.0
    assert endings.age_seconds() > 0.0
    monkeypatch.undo()

    def load(*_: object) -> Digits:
        while True:
            time.sleep(0.01)

    monkeypatch.setattr(images_gpu, "load", load)
    words = ["images_gpu", "--minutes", "0.001", "--out", str(tmp_path), "--began", str(time.monotonic())]
    monkeypatch.setattr(images_gpu.sys, "argv", words)
    images_gpu.main()
    assert not list(tmp_path.iterdir())


def test_no_run_begins_in_too_little_time_and_none_without_a_step_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images_gpu, "engines_off", lambda _device: {})
    monkeypatch.setattr(images_gpu, "train_classifier", lambda *_, **__: None)
    now, shares = [0.0], []

    def run_one(*given: object) -> None:
        shares.append(given[4])
        now[0] += 80.0

    monkeypatch.setattr(images_gpu, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with monkeypatch.context() as patched:
        patched.setattr(images_gpu, "run_one", run_one)
        runs = [("tiny", 5.0, "as today")] * 3
        limits = asked(tmp_path, minutes=3.9, began=0.0)
        assert run_all({"tiny": make_data()}, runs, limits) == []
    assert shares == [78.0, 77.0], "with 74 seconds left none begins"
    assert not list(tmp_path.iterdir())


def test_a_run_that_has_no_time_for_a_step_is_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count(0.0, 1e3)
    monkeypatch.setattr(images_gpu, "pace_of", lambda *_: Pace(0.0, 0.0, 8.0))
    monkeypatch.setattr(
        images_gpu, "time", SimpleNamespace(monotonic=lambda: next(clock), process_time=time.process_time)
    )
    named = ("tiny", 5.0, "as today")
    assert images_gpu.run_one(make_data(), None, named, 0, 100.0, asked(tmp_path), {}) is None  # type: ignore[arg-type]


def test_a_line_after_one_that_was_broken_off_is_read(tmp_path: Path) -> None:
    one = images_gpu.Done("mnist", "as today", 10.0, 0, 8, 2, 2, 2, 1.0, 80.0, 3.0, 1.0)
    (tmp_path / "images_gpu.jsonl").write_text('{"data": "mn', encoding="utf-8")
    images_gpu._write([one], asked(tmp_path), 12)
    assert images_gpu._written(tmp_path) == [one]


def test_where_no_images_are_the_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="name the folder with --data"):
        load(tmp_path / "mnist", 28)


def test_the_alarm_is_put_back() -> None:
    with endings.alarm(5.0):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
