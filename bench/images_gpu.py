"""A quarter of an hour of a GPU for IDPGAN by itself: `python -m bench.images_gpu --beside --data DATA --out FOLDER`.

First the engines on the GPU against `vmap` on the CPU. Then trainings: MNIST at ε = 10 and 1, Fashion-MNIST, 28×28, with large
batches, many critic steps, copies of images, and both ways to begin from a measured mixture. The most promising order comes first, of
every data set and ε, then the next. Orders for which less than `LEAST_SECONDS` a run would be left are not begun. What is left of the time
is shared among the runs that are still to come: each takes as many of its steps as fit, which is settled before it is priced. Every run is
written as it ends (FOLDER/images_gpu.jsonl, and the table beside it), so a cut-off loses one run; the clock ends everything after `--minutes`.

`--beside`: a process for each data set and ε, all on the same GPU, which one training with small networks leaves idle most of the time. Each
has all the minutes, and a folder of its own in FOLDER. Without it, 14 minutes are enough for eleven runs.

On a CPU, small: `python -m bench.images_gpu --side 14 --most-steps 600 --most-batch 512 --count 10000 --minutes 60`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.engines_off import engines_off
from bench.image_data import DATA, Digits, load
from bench.image_scores import Classifier, accuracy, features, frechet_distance, train_classifier
from bench.images import picture
from bench.paces import PROBED, Pace, finish, pace_of
from bench.pages import RUNS, keep
from bench.paper.runs import Sizes, begin, drawn_images

WIDE: dict[str, Any] = {
    "image_networks": {"layers": "convolutions", "generator_channels": [128, 64], "critic_channels": [64, 128]},
    "optimizer": {"critic_learning_rate": 1e-3, "generator_learning_rate": 5e-4, "beta2": 0.99},
}
DESKEWED = {"kind": "mixture", "upright": None}
MOST_OFF = 1e-4
"""Of the clipped sums of two devices, as a part of the longest number."""
FREE_SHARE = 0.3
"""Of a run's time, at most, for steps on free samples."""
UNHURRIED_MINUTES = 60.0
"""From then on no step is timed first, and every run takes all of its steps."""
TIME_TO_SCORE = 20.0
"""Seconds that a run leaves for what comes after its steps."""
LEAST_SECONDS = 75.0
"""Of a run, on average: a mixture is measured twice (once to see how long that takes), and scoring has its time."""


@dataclass(frozen=True)
class Setting:
    """An order of `idpgan`, with what the service would take from n."""

    knobs: dict[str, Any]
    steps: int = 5_000
    batch: int = 512
    critic_steps: int = 2


SETTINGS: dict[str, Setting] = {
    "deskewed mixture, corrected": Setting({"warm_start": DESKEWED}, steps=600),
    "nine tenths for the mixture": Setting({"warm_start": {**DESKEWED, "precision_share": 0.9}}, steps=300),
    "deskewed mixture, corrected slowly": Setting(
        {"warm_start": DESKEWED, "optimizer": {"generator_learning_rate": 5e-5}}, steps=600
    ),
    "free samples, wide convolutions": Setting(
        {**WIDE, "warm_start": {**DESKEWED, "generator": "trained", "free_steps": 4_000}}, critic_steps=5
    ),
    "free samples, wide convolutions, 4,096 and 50": Setting(
        {**WIDE, "warm_start": {**DESKEWED, "generator": "trained", "free_steps": 4_000}},
        batch=4_096,
        critic_steps=50,
    ),
    "free samples, copies, 4,096 and 50": Setting(
        {"augmentation": {"copies": 4}, "warm_start": {**DESKEWED, "generator": "trained", "free_steps": 4_000}},
        steps=20_000,
        batch=4_096,
        critic_steps=50,
    ),
    "free samples": Setting({"warm_start": {**DESKEWED, "generator": "trained"}}),
    "copies": Setting({"augmentation": {"copies": 4}}),
    "as today": Setting({}),
}
"""The most promising first."""


@dataclass(frozen=True)
class Asked:
    """What is the same for all runs."""

    minutes: float
    out: Path
    count: int
    epochs: int
    most_steps: int
    most_batch: int
    seeds: int
    device: torch.device


@dataclass(frozen=True)
class Done:
    """One run."""

    data: str
    setting: str
    epsilon: float
    seed: int
    batch: int
    critic_steps: int
    planned: int
    taken: int
    milliseconds: float
    """Of a critic step with its part of a generator step, by the clock."""
    accuracy: float
    fid: float
    processor: float


class OutOfTime(Exception):
    """The minutes are over."""


def main() -> None:
    given = _arguments()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    asked = Asked(
        given.minutes, given.out, given.count, given.epochs, given.most_steps, given.most_batch, given.seeds, device
    )
    done = _beside(given, asked) if given.beside else _here(given, asked)
    if given.tag and done:
        keep("images", _text(done, asked, given.side), given.tag)


def _here(given: argparse.Namespace, asked: Asked) -> list[Done]:
    torch.set_num_threads(given.threads or 1)
    data = {name: load(given.data / name, given.side) for name in given.names}
    return run_all(data, runs_of(given.names, given.epsilons, given.settings, asked), asked)


def runs_of(
    names: Sequence[str], epsilons: Sequence[float], settings: Sequence[str], asked: Asked
) -> list[tuple[str, float, str]]:
    """Data, ε and setting of every run that the time is enough for: a setting of all data first, then the next one."""
    runs = [(name, epsilon, setting) for setting in settings for name in names for epsilon in epsilons]
    if asked.minutes >= UNHURRIED_MINUTES:
        return runs
    enough = max(1, int(60.0 * asked.minutes / LEAST_SECONDS / asked.seeds))
    for name, epsilon, setting in runs[enough:]:
        print(f"no time for: {name}, ε = {epsilon:g}, {setting}", flush=True)
    return runs[:enough]


def _beside(given: argparse.Namespace, asked: Asked) -> list[Done]:
    """A process for each data set and ε, and one table of all of them; raises where one failed, after the table is written."""
    pairs = [(name, epsilon) for name in given.names for epsilon in given.epsilons]
    threads = given.threads or max(1, (os.cpu_count() or 1) // len(pairs))
    outs = [asked.out / f"{name}-{epsilon:g}" for name, epsilon in pairs]
    shared = ["--settings", *given.settings, "--threads", str(threads)]
    for name in ("data", "minutes", "side", "seeds", "count", "epochs", "most_steps", "most_batch"):
        shared += [f"--{name.replace('_', '-')}", str(getattr(given, name))]
    command = [sys.executable, "-m", "bench.images_gpu", *shared]
    running = [
        subprocess.Popen([*command, "--names", name, "--epsilons", str(epsilon), "--out", str(out)])
        for (name, epsilon), out in zip(pairs, outs, strict=True)
    ]
    try:
        codes = [process.wait() for process in running]
    finally:
        for process in running:
            process.kill()
    # Of runs of an earlier call in the same folder the newest.
    newest = {(one.data, one.setting, one.epsilon, one.seed): one for out in outs for one in _written(out)}
    done = list(newest.values())
    if done:
        (asked.out / "images_gpu.md").write_text(_text(done, asked, given.side), encoding="utf-8")
    if any(codes):
        raise SystemExit(f"a process failed: {dict(zip(pairs, codes, strict=True))}")
    return done


def run_all(data: dict[str, Digits], runs: Sequence[tuple[str, float, str]], asked: Asked) -> list[Done]:
    """Every (data, ε, setting) in turn, as long as there is time; raises where the engines of the device are off."""
    ends = time.monotonic() + 60.0 * asked.minutes
    done: list[Done] = []
    asked.out.mkdir(parents=True, exist_ok=True)
    with _alarm(60.0 * asked.minutes):
        for name, off in engines_off(asked.device).items():
            print(f"{name} on {asked.device}: off by {off:.1e} of the longest number", flush=True)
            if not off <= MOST_OFF:
                raise RuntimeError(f"{name}: sums on {asked.device} are not those of the CPU ({off:.1e})")
        judges: dict[str, Classifier] = {}
        pace: dict[str, Pace] = {}
        for place, (name, epsilon, setting) in enumerate(runs):
            for seed in range(asked.seeds):
                left = ends - time.monotonic()
                if left < TIME_TO_SCORE:
                    return done
                share = left / ((len(runs) - place) * asked.seeds - seed)
                if name not in judges:
                    some = slice(0, asked.count)
                    judges[name] = train_classifier(
                        data[name].train[some],
                        data[name].labels[some],
                        epochs=asked.epochs,
                        seed=0,
                        device=asked.device,
                    )
                one = run_one(data[name], judges[name], (name, epsilon, setting), seed, share, asked, pace)
                done.append(one)
                _write(done, asked, data[name].train.shape[1])
    return done


def run_one(
    data: Digits,
    judge: Classifier,
    named: tuple[str, float, str],
    seed: int,
    seconds: float,
    asked: Asked,
    pace: dict[str, Pace],
) -> Done:
    """Train as long as `seconds` allow, draw, score. `pace` keeps how long steps of a setting take."""
    name, epsilon, setting = named
    until = time.monotonic() + max(1.0, seconds - TIME_TO_SCORE)
    processor = time.process_time()
    sizes = _sizes(SETTINGS[setting], asked)
    knobs = {"method": "idpgan", **SETTINGS[setting].knobs}
    if asked.minutes >= UNHURRIED_MINUTES:
        pace[setting] = Pace(0.0, 0.0, 1e-9)
    elif setting not in pace:
        pace[setting] = pace_of(knobs, data, sizes, seed)
    measures, free, step = pace[setting]
    left = until - time.monotonic() - measures
    more = _with_free_steps(knobs, min(asked.most_steps, int(FREE_SHARE * left / free)) if free else asked.most_steps)
    fits = max(PROBED, int(0.9 * (1.0 - FREE_SHARE * bool(free)) * left / step))
    sizes = replace(sizes, steps=min(sizes.steps, fits))
    trained = begin(knobs, epsilon, data, sizes, seed, more)
    trained.measure()
    trained.warm_up(lambda _share: None)
    began = time.monotonic()
    while trained.plan.steps_done < sizes.steps and time.monotonic() < until:
        trained.critic_step()
        if trained.generator_is_due():
            trained.generator_step()
    finish(asked.device)
    milliseconds = 1e3 * (time.monotonic() - began) / max(1, trained.plan.steps_done)
    images, labels = drawn_images(trained, sizes.count, seed)
    network = train_classifier(images, labels, epochs=sizes.epochs, seed=seed, device=asked.device)
    if seed == 0 and set(range(10)) <= set(labels.tolist()):
        file = f"images_gpu-{name}-{epsilon:g}-{setting}".replace(" ", "-").replace(",", "")
        picture(images, labels, asked.out / f"{file}.png")
    return Done(
        name,
        setting,
        epsilon,
        seed,
        sizes.expected_batch,
        sizes.critic_steps,
        sizes.steps,
        trained.plan.steps_done,
        milliseconds,
        100.0 * accuracy(network, data.test, data.test_labels),
        frechet_distance(features(judge, data.test), features(judge, images)),
        time.process_time() - processor,
    )


def _sizes(setting: Setting, asked: Asked) -> Sizes:
    return Sizes(
        min(setting.steps, asked.most_steps),
        min(setting.batch, asked.most_batch),
        setting.critic_steps,
        asked.count,
        asked.epochs,
    )


def _with_free_steps(knobs: dict[str, Any], most: int) -> dict[str, Any]:
    """What replaces the order's warm start: at most so many free steps."""
    start = knobs.get("warm_start", {})
    if start.get("generator") != "trained":
        return {}
    return {"warm_start": {**start, "free_steps": max(1, min(start.get("free_steps", 2_000), most))}}


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Whatever runs is broken off, and no later run begins; what was written stays."""

    def ring(_signal: int, _frame: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except OutOfTime:
        print("the time is over; what ended is written", flush=True)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _write(done: list[Done], asked: Asked, side: int) -> None:
    """The newest run, and the table of all."""
    with (asked.out / "images_gpu.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(done[-1])) + "\n")
    (asked.out / "images_gpu.md").write_text(_text(done, asked, side), encoding="utf-8")
    print(_line(done[-1:]), flush=True)


def _written(out: Path) -> list[Done]:
    """What ended and was written there, oldest first."""
    file = out / "images_gpu.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [Done(**json.loads(line)) for line in lines]


def _text(done: list[Done], asked: Asked, side: int) -> str:
    where = torch.cuda.get_device_name() if asked.device.type == "cuda" else f"{platform.machine()}, one thread, busy"
    head = (
        f"{where}; `{shlex.join(['python', '-m', 'bench.images_gpu', *_without_paths(sys.argv[1:])])}`; δ = 1e-5, {side}×{side}, accuracy in % on the real\n"
        f"test images of a small network trained for {asked.epochs} epochs on {asked.count:,} synthetic images; mean (largest less smallest) of seeds.\n\n"
        "| data | ε | order | batch | critic steps | steps | ms a step | accuracy | FID | CPU s |\n|---|---|---|---|---|---|---|---|---|---|\n"
    )
    groups: dict[tuple[str, float, str], list[Done]] = {}
    for one in done:
        groups.setdefault((one.data, one.epsilon, one.setting), []).append(one)
    return head + "\n".join(_line(of) for of in groups.values()) + "\n"


def _line(of: Sequence[Done]) -> str:
    first = of[0]
    steps = str(first.taken) if first.taken == first.planned else f"{first.taken} of {first.planned}"
    middle = f"{first.batch} | {first.critic_steps} | {steps} | {np.mean([one.milliseconds for one in of]):.1f}"
    scores = f"{_spread([one.accuracy for one in of])} | {_spread([one.fid for one in of])}"
    processor = np.mean([one.processor for one in of])
    return f"| {first.data} | {first.epsilon:g} | {first.setting} | {middle} | {scores} | {processor:.0f} |"


def _spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f}" + (f" ({max(values) - min(values):.1f})" if len(values) > 1 else "")


def _without_paths(words: Sequence[str]) -> list[str]:
    """As it was given, less where data and results lie."""
    kept, skip = [], False
    for word in words:
        if not skip and word not in {"--data", "--out"}:
            kept.append(word)
        skip = word in {"--data", "--out"}
    return kept


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with a folder of files per data set")
    parser.add_argument("--out", type=Path, default=RUNS / "images_gpu", help="where results are written, run by run")
    parser.add_argument("--minutes", type=float, default=14.0, help="everything ends then")
    parser.add_argument("--names", nargs="+", default=["mnist", "fashion_mnist"])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[10.0, 1.0])
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--side", type=int, choices=[14, 28], default=28)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--count", type=int, default=60_000, help="synthetic images that a classifier is trained on")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--most-steps", type=int, default=1_000_000)
    parser.add_argument("--most-batch", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, help="of a process; 1, with --beside its part of all cores")
    parser.add_argument("--beside", action="store_true", help="a process for each data set and ε, all at once")
    parser.add_argument("--tag", default="", help="also keep the table in bench/results/images.md, under this name")
    return parser.parse_args()


if __name__ == "__main__":
    main()
