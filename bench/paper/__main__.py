"""The seed paper's comparison again, under accounting that holds.

    python -m bench.paper                    14×14 MNIST, minutes on 2 cores
    python -m bench.paper --full             28×28, 20,000 critic steps, three seeds: for one CUDA GPU, a few hours
    python -m bench.paper --methods DPGAN,IDPGAN --epsilons 1,10 --seeds 3 --no-ablation
    python -m bench.paper --held-out --knobs '{"image_networks": {"layers": "convolutions"}}'     to choose a setting
    python -m bench.paper --all [--short] [--seeds 3] [--only TEXT] [--minutes 20]      all tables, claimed beside honest

`--all` goes on where it was broken off (bench/paper/every.py) and writes `bench/results/paper-all.md`. Of the others: every private method is calibrated to the same (ε, δ) by the price of its own list of events. Writes the
section NAME[-TAG] of `bench/results/paper.md`, and a picture per method to `bench/runs`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

import torch

from bench.image_data import DATA, held_out, load
from bench.image_scores import train_classifier
from bench.images import picture
from bench.pages import keep, run_file
from bench.paper.every import run_all
from bench.paper.methods import ABLATION, KNOBS, METHODS
from bench.paper.report import render
from bench.paper.runs import MIXTURE, ORDERS, Result, Sizes, run

SMALL = Sizes(steps=1_000, expected_batch=512, critic_steps=2, count=20_000, epochs=3)
QUICK = Sizes(steps=24, expected_batch=64, critic_steps=2, count=1_000, epochs=1)
FULL = Sizes(steps=20_000, expected_batch=512, critic_steps=5, count=60_000, epochs=5)


def main() -> None:
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    if arguments.all:
        length = {"steps": arguments.steps, "short": arguments.short}
        run_all(arguments.data, seeds=arguments.seeds or 1, only=arguments.only, minutes=arguments.minutes, **length)
        return
    arguments.no_file |= arguments.quick
    sizes, side, seeds = (FULL, 28, 3) if arguments.full else (QUICK if arguments.quick else SMALL, 14, 1)
    if arguments.steps:
        sizes = Sizes(arguments.steps, sizes.expected_batch, sizes.critic_steps, sizes.count, sizes.epochs)
    seeds, side = arguments.seeds or seeds, arguments.side or side
    data, tested_on = load(arguments.data / arguments.name, side), "the 10,000 real test images"
    if arguments.held_out:
        data, tested_on = held_out(data), "a sixth of the training images, which was held out"
    knobs = json.loads(arguments.knobs)
    judge = train_classifier(data.train[: sizes.count], data.labels[: sizes.count], epochs=sizes.epochs, seed=0)
    compared: dict[str, list[Result]] = {}
    ablation: dict[str, list[Result]] = {}
    epsilon = float(arguments.epsilons.split(",")[-1])
    section = f"{arguments.name}-{arguments.tag}" if arguments.tag else arguments.name
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "2 cores, 24 GiB"

    def written() -> str:
        """After every row: a long run that is cut short leaves what it has."""
        text = render(_command(), arguments.name, side, seeds, sizes, device, compared, ablation, epsilon, tested_on)
        if not arguments.no_file:
            keep("paper", text, section)
        return text

    for method in arguments.methods.split(","):
        asked = [None] if method == "WGAN-GP" else [float(one) for one in arguments.epsilons.split(",")]
        for each in asked:
            name = method if each is None else f"{method}, ε = {each:g}"
            compared[name] = [run(method, each, data, judge, sizes, seed, **knobs) for seed in range(seeds)]
            print(name, compared[name][-1].scores, flush=True)
            first = compared[name][0]
            if not arguments.no_file:
                tag = name.replace(", ε = ", "-").replace(" ", "-").lower()
                picture(first.images, first.labels, run_file(f"paper-{section}-{tag}.png"))
            written()
    for name, part in {} if arguments.no_ablation else ABLATION.items():
        ran = compared.get(f"IDPGAN, ε = {epsilon:g}") if part == KNOBS else None
        ablation[name] = ran or [run(name, epsilon, data, judge, sizes, seed, **knobs) for seed in range(seeds)]
        print(name, ablation[name][-1].scores, flush=True)
        written()
    print(written())


def _command() -> str:
    """As it was given, less where the data lies."""
    given = [word for word in sys.argv[1:] if not word.startswith("--data=")]
    if "--data" in given:
        place = given.index("--data")
        given = given[:place] + given[place + 2 :]
    return shlex.join(["python", "-m", "bench.paper", *given])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with a folder of files per data set")
    parser.add_argument("--name", default="mnist", choices=["mnist", "fashion_mnist"])
    parser.add_argument("--methods", default=",".join((*METHODS, MIXTURE)))
    parser.add_argument("--epsilons", default="10")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--side", type=int, choices=[14, 28])
    parser.add_argument("--knobs", default="{}", help="JSON of an order, over those of every method but the mixture")
    parser.add_argument("--held-out", action="store_true", help="a sixth of the training images is the test")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a few steps, to see that it runs; prints only")
    parser.add_argument("--no-ablation", action="store_true")
    parser.add_argument("--no-file", action="store_true")
    parser.add_argument("--tag", default="", help="added to the name of the section")
    every = parser.add_argument_group("--all")
    every.add_argument("--all", action="store_true", help="every table of the paper, resumable, claimed beside honest")
    every.add_argument("--short", action="store_true", help="1,000 steps of images, 600 of cards, 200 of DPACGAN")
    every.add_argument("--only", default="", metavar="TEXT", help="runs whose line has these words: 'mnist, IDPGAN'")
    every.add_argument("--minutes", type=float, default=1e9, help="begin no run after so many")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.methods.split(",") if name not in {*ORDERS, MIXTURE}]:
        parser.error(f"--methods: there is no {' and no '.join(map(repr, unknown))}")
    return arguments


if __name__ == "__main__":
    main()
