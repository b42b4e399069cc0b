"""The quarter of an hour of a GPU, at a tiny size: every setting trains, results are written run by run, and the clock ends it."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bench import images_gpu, paces
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
    sizes = {"minutes": 10.0, "count": 200, "epochs": 1, "most_steps": 2, "most_batch": 8, "seeds": 1, "device": CPU}
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
    done = run_all({"tiny": make_data()}, [("tiny", 5.0, "as today")], asked(tmp_path, most_steps=50, minutes=2.0))
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
    monkeypatch.setattr(images_gpu, "TIME_TO_SCORE", 0.0)
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


def test_a_process_for_each_data_set_and_epsilon_and_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    class Process:
        def __init__(self, command: list[str]) -> None:
            commands.append(command)
            given = dict(pairwise(command))
            out, epsilon = Path(given["--out"]), float(given["--epsilons"])
            out.mkdir(parents=True)
            done = images_gpu.Done(given["--names"], "as today", epsilon, 0, 8, 2, 2, 2, 1.0, 80.0 + epsilon, 3.0, 1.0)
            (out / "images_gpu.jsonl").write_text(json.dumps(done.__dict__) + "\n", encoding="utf-8")

        def wait(self) -> int:
            return 0

        def kill(self) -> None:
            pass

    monkeypatch.setattr(images_gpu.subprocess, "Popen", Process)
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


def test_where_no_images_are_the_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="name the folder with --data"):
        load(tmp_path / "mnist", 28)


def test_the_alarm_is_put_back() -> None:
    with images_gpu._alarm(5.0):
        pass
    assert images_gpu.signal.getitimer(images_gpu.signal.ITIMER_REAL) == (0.0, 0.0)
