"""The quarter of an hour of a GPU, at a tiny size: every setting trains, results are written run by run, and the clock ends it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bench import images_gpu
from bench.engines_off import engines_off
from bench.image_data import Digits
from bench.images_gpu import SETTINGS, Asked, Pace, run_all
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
    monkeypatch.setattr(images_gpu, "_pace_of", lambda *_: Pace(0.0, 0.0, 8.0))
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


def test_the_alarm_is_put_back() -> None:
    with images_gpu._alarm(5.0):
        pass
    assert images_gpu.signal.getitimer(images_gpu.signal.ITIMER_REAL) == (0.0, 0.0)
