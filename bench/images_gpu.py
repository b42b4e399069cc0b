"""A quarter of an hour of a GPU for IDPGAN by itself: `python -m bench.images_gpu --beside --data DATA --out FOLDER`.

First the engines on the GPU against `vmap` on the CPU. Then trainings: MNIST at ε = 10 and 1, Fashion-MNIST, 28×28, with large
batches, many critic steps, copies of images, and both ways to begin from a measured mixture. The most promising order comes first, of
every data set and ε, then the next. No run begins with less than `LEAST_SECONDS` left. What is left of the time is shared among the runs
that are still to come: each takes as many of its steps as fit, which is settled before it is priced. Every run is written as it ends
(FOLDER/images_gpu.jsonl, and the table beside it), so a cut-off loses one run; the clock ends everything `--minutes` after the process began.

`--beside`: a process for each data set and ε, all on the same GPU, which one training with small networks leaves idle most of the time. Each
has all the minutes, and a folder of its own in FOLDER. SIGTERM ends them all, and the table of what ended is still written. Without it, 14
minutes are enough for eleven runs at most.

On a CPU, small: `python -m bench.images_gpu --side 14 --most-steps 600 --most-batch 512 --count 10000 --minutes 60`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.endings import age_seconds, alarm, terminated
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
"""Of a run: a mixture is measured twice (once to see how long that takes), and scoring has its time."""


@dataclass(frozen=True)
class Setting:
    """An order of `idpgan`, with what the service would take from n."""

    knobs: dict[str, Any]
    steps: int = 5_000
    batch: int = 512
    critic_steps: int = 2


SETTINGS: dict[str, Setting] = {
    "nine tenths for the mixture": Setting({"warm_start": {**DESKEWED, "precision_share": 0.9}}, steps=300),
    "free samples, wide convolutions": Setting(
        {**WIDE, "warm_start": {**DESKEWED, "generator": "trained", "free_steps": 4_000}}, critic_steps=5
    ),
    "deskewed mixture, corrected": Setting({"warm_start": DESKEWED}, steps=600),
    "deskewed mixture, corrected slowly": Setting(
        {"warm_start": DESKEWED, "optimizer": {"generator_learning_rate": 5e-5}}, steps=600
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
"""The most promising first. On digits nine tenths for the mixture and half of the steps are as good as its corrected form. On clothes at ε = 10
corrected steps harm: 83.9 % after one, 75.5 after 600, 54.7 after 300 with nine tenths (bench/results/images.md#idpgan-alone-one-step and
above). So free samples come second, and the longer corrections after them."""


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
    began: float
    """When the minutes began, by `time.monotonic`, which all processes of a machine share."""

    @property
    def left(self) -> float:
        """Seconds."""
        return self.began + 60.0 * self.minutes - time.monotonic()


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


def main() -> None:
    given = _arguments()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    began = time.monotonic() - age_seconds() if given.began is None else given.began
    sizes = (given.count, given.epochs, given.most_steps, given.most_batch, given.seeds)
    asked = Asked(given.minutes, given.out, *sizes, device, began)
    done = _beside(given, asked) if given.beside else _here(given, asked)
    if given.tag and done:
        keep("images", _text(done, asked, given.side), given.tag)


def _here(given: argparse.Namespace, asked: Asked) -> list[Done]:
    torch.set_num_threads(given.threads or 1)
    data: dict[str, Digits] = {}
    with alarm(asked.left):
        data |= {name: load(given.data / name, given.side) for name in given.names}
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
    """A process for each data set and ε, and one table of all of them, also where SIGTERM ends them; raises where one failed, after it is written."""
    pairs = [(name, epsilon) for name in given.names for epsilon in given.epsilons]
    threads = given.threads or max(1, len(os.sched_getaffinity(0)) // len(pairs))
    outs = [asked.out / f"{name}-{epsilon:g}" for name, epsilon in pairs]
    shared = ["--settings", *given.settings, "--threads", str(threads), "--began", repr(asked.began)]
    for name in ("data", "minutes", "side", "seeds", "count", "epochs", "most_steps", "most_batch"):
        shared += [f"--{name.replace('_', '-')}", str(getattr(given, name))]
    command = [sys.executable, "-m", "bench.images_gpu", *shared]
    running: list[subprocess.Popen[bytes]] = []
    with terminated():
        try:
            for (name, epsilon), out in zip(pairs, outs, strict=True):
                own = ["--names", name, "--epsilons", str(epsilon), "--out", str(out)]
                running.append(subprocess.Popen([*command, *own]))
            codes = [process.wait() for process in running]
        finally:
            for process in running:
                process.kill()
            done = _joined(outs, asked, given.side)
    if any(codes):
        raise SystemExit(f"a process failed: {dict(zip(pairs, codes, strict=True))}")
    return done


def _joined(outs: Sequence[Path], asked: Asked, side: int) -> list[Done]:
    """What all processes wrote, and one table of it; of runs of an earlier call in the same folder the newest."""
    newest = {(one.data, one.setting, one.epsilon, one.seed): one for out in outs for one in _written(out)}
    done = list(newest.values())
    if done:
        (asked.out / "images_gpu.md").write_text(_text(done, asked, side), encoding="utf-8")
    return done


def run_all(data: dict[str, Digits], runs: Sequence[tuple[str, float, str]], asked: Asked) -> list[Done]:
    """Every (data, ε, setting) in turn, as long as there is time; raises where the engines of the device are off."""
    done: list[Done] = []
    asked.out.mkdir(parents=True, exist_ok=True)
    with alarm(asked.left):
        for name, off in engines_off(asked.device).items():
            print(f"{name} on {asked.device}: off by {off:.1e} of the longest number", flush=True)
            if not off <= MOST_OFF:
                raise RuntimeError(f"{name}: sums on {asked.device} are not those of the CPU ({off:.1e})")
        judges: dict[str, Classifier] = {}
        pace: dict[str, Pace] = {}
        for place, (name, epsilon, setting) in enumerate(runs):
            for seed in range(asked.seeds):
                if name not in judges:
                    some = slice(0, asked.count)
                    judges[name] = train_classifier(
                        data[name].train[some],
                        data[name].labels[some],
                        epochs=asked.epochs,
                        seed=0,
                        device=asked.device,
                    )
                left = asked.left
                if left < LEAST_SECONDS:
                    print(f"no time for: {name}, ε = {epsilon:g}, {setting}, and what follows", flush=True)
                    return done
                # Of those for which there will be time: what the others do not get is not kept for them.
                share = left / min((len(runs) - place) * asked.seeds - seed, max(1, int(left / LEAST_SECONDS)))
                one = run_one(data[name], judges[name], (name, epsilon, setting), seed, share, asked, pace)
                if one is None:
                    print(f"no step fitted: {name}, ε = {epsilon:g}, {setting}", flush=True)
                    continue
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
) -> Done | None:
    """Train as long as `seconds` allow, draw, score; None where no step was taken. `pace` keeps how long steps of a setting take."""
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
    if not trained.plan.steps_done:
        return None
    milliseconds = 1e3 * (time.monotonic() - began) / trained.plan.steps_done
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


def _write(done: list[Done], asked: Asked, side: int) -> None:
    """The newest run, and the table of all."""
    path = asked.out / "images_gpu.jsonl"
    torn = path.exists() and not path.read_text(encoding="utf-8").endswith("\n")  # an earlier call ended within a line
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" * torn + json.dumps(asdict(done[-1])) + "\n")
    (asked.out / "images_gpu.md").write_text(_text(done, asked, side), encoding="utf-8")
    print(_line(done[-1:]), flush=True)


def _written(out: Path) -> list[Done]:
    """What ended and was written there, oldest first. The end may come within a line, which is then left out."""
    file = out / "images_gpu.jsonl"
    found: list[Done] = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        with suppress(ValueError, TypeError):
            found.append(Done(**json.loads(line)))
    return found


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
    """As it was given, less where data and results lie and when it began."""
    left_out = {"--data", "--out", "--began"}
    kept, skip = [], False
    for word in words:
        if not skip and word not in left_out:
            kept.append(word)
        skip = word in left_out
    return kept


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with a folder of files per data set")
    parser.add_argument("--out", type=Path, default=RUNS / "images_gpu", help="where results are written, run by run")
    parser.add_argument("--minutes", type=float, default=14.0, help="everything ends so long after the process began")
    parser.add_argument("--began", type=float, help=argparse.SUPPRESS)
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
