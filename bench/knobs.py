"""What each knob of the private step is worth: one order, one knob at a time, at the same price (docs/methods/private_step.md).

    python -m bench.knobs [--epsilon 10] [--seeds 5] [--steps 400] [--batch 128] [--variants plain,tanh,...] [--quick]

The same of public starts and masks. MNIST at 14×14, perceptrons of 64 and 64; accuracy of a small convolutional network that was trained on the synthetic images, on the real
test images, and the Inception score by a network trained on real ones. Writes the section EPSILON-STEPS of bench/results/knobs.md after every
run. Quick: two variants of five steps; writes nothing.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import sys
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

from bench.image_data import DATA, load
from bench.image_scores import train_classifier
from bench.pages import keep, run_file
from bench.paper.runs import Sizes, run

BASE = "IDPGAN with bounded weights"
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("no knob", {}),
    "tanh": ("`critic_activation` tanh", {"critic_activation": {"kind": "tanh"}}),
    "tempered": (
        "`critic_activation` tempered sigmoid (1.58, 3, 0.71)",
        {
            "critic_activation": {
                "kind": "tempered_sigmoid",
                "scale": 1.58,
                "inverse_temperature": 3.0,
                "offset": 0.71,
            }
        },
    ),
    "noise before": ("`pre_clip_noise` 0.003", {"pre_clip_noise": 0.003}),
    "sparse step": ("`sparse` half, coins of the step", {"sparse": {"share": 0.5}}),
    "sparse weights": ("`sparse` half, largest weights", {"sparse": {"share": 0.5, "chosen_by": "weights"}}),
    "memory": ("`memory` 0.3", {"memory": {"share": 0.3}}),
    "scale": ("`scale` (AdaDP)", {"scale": {}}),
    "importance": ("`importance` of generated records", {"importance": {}}),
    "bought": ("`importance` bought", {"importance": {"relevance": "bought"}}),
    "subspace": ("`subspace` rank 16, released, with residual", {"subspace": {}}),
    "subspace alone": ("`subspace` rank 16, released, no residual", {"subspace": {"residual": False}}),
}
NAMED = {"public_dataset": str(uuid.UUID(int=7)), "public_steps": 1_000}
PUBLIC: dict[str, tuple[str, dict[str, Any]]] = {
    "public": ("public start: 1,000 steps on Fashion-MNIST", NAMED),
    "mask": ("`public_mask_share` 0.2: a lottery ticket of Fashion-MNIST", {**NAMED, "public_mask_share": 0.2}),
    "pruned": (
        "the same, `public_mask_rest` zero",
        {**NAMED, "public_mask_share": 0.2, "public_mask_rest": "zero"},
    ),
    "mask of a half": ("`public_mask_share` 0.5", {**NAMED, "public_mask_share": 0.5}),
    "mask of most": ("`public_mask_share` 0.8", {**NAMED, "public_mask_share": 0.8}),
}
"""Variants of where networks begin; their knobs are of the order itself."""
SHOWN = ("accuracy", "inception")


def main() -> None:
    asked = _arguments()
    torch.set_num_threads(1)
    data = load(asked.data / "mnist", 14)
    judge = train_classifier(data.train[:20_000], data.labels[:20_000], epochs=2, seed=0)
    sizes = Sizes(asked.steps, asked.batch, 2, asked.count, 3)
    section = f"{asked.epsilon:g}-{asked.steps}{asked.suffix}"
    kept = run_file(f"knobs-{section}.json")
    runs: list[dict[str, Any]] = json.loads(kept.read_text()) if asked.resume and kept.exists() else []
    done = {(one["variant"], one["seed"]) for one in runs}
    for seed in range(1, asked.seeds + 1):
        for variant in asked.variants.split(","):
            if (variant, seed) in done:
                continue
            more: dict[str, Any] = {"image_networks": {"layers": "perceptrons", "critic_hidden": [64, 64]}}
            if variant in PUBLIC:
                more |= PUBLIC[variant][1] | {"public": load(asked.data / "fashion_mnist", 14)}
            else:
                more["private_step"] = VARIANTS[variant][1] or None
            found = run(BASE, asked.epsilon, data, judge, sizes, seed, **more)
            runs.append({"variant": variant, "seed": seed, **found.scores})
            print(json.dumps(runs[-1]), flush=True)
            if not asked.quick:
                kept.write_text(json.dumps(runs))
                keep("knobs", markdown(asked, runs), section)


def markdown(asked: argparse.Namespace, runs: list[dict[str, Any]]) -> str:
    """Means with half of 95 % intervals (Student's t over seeds)."""
    lines = [
        (
            f"`{shlex.join(['python', '-m', 'bench.knobs', *_settings()])}`; ε = {asked.epsilon:g}, "
            f"δ = 1e-05; MNIST at 14×14, {asked.steps} private steps, {asked.count} synthetic images; one thread ({platform.machine()}). "
            "Mean ± half the 95 % interval (t) over seeds; seconds of the processor, training alone."
        ),
        "",
        "| variant | | seeds | accuracy, % | Inception score | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for variant, (words, _) in (VARIANTS | PUBLIC).items():
        of_it = [one for one in runs if one["variant"] == variant]
        if of_it:
            cells = " | ".join(_cell([one[name] for one in of_it]) for name in SHOWN)
            seconds = np.mean([one["processor"] for one in of_it])
            lines.append(f"| {variant} | {words} | {len(of_it)} | {cells} | {seconds:.0f} |")
    return "\n".join(lines) + "\n"


def _settings() -> list[str]:
    """The arguments of the command that say what is run, not where things lie or that it goes on."""
    words = [word for word in sys.argv[1:] if word != "--resume"]
    return [word for before, word in zip(["", *words], words, strict=False) if "--data" not in (before, word)]


def _cell(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.2f}"
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.2f} ± {half:.2f}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--epsilon", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--count", type=int, default=6_000, help="synthetic images")
    parser.add_argument("--variants", default=",".join(VARIANTS | PUBLIC))
    parser.add_argument("--suffix", default="", help="of the section that is written")
    parser.add_argument("--resume", action="store_true", help="keep the runs of bench/runs")
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    if asked.quick:
        asked.seeds, asked.steps, asked.count, asked.variants = 1, 5, 600, "plain,subspace"
    return asked


if __name__ == "__main__":
    main()
