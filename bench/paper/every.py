"""`python -m bench.paper --all`: every number of the paper's tables again, run by run, so that it can be broken off and taken up.

Runs that are in `bench/results/paper-all.json` are not made again; each new one is added there at once, and the page
`bench/results/paper-all.md` written anew. A run is what it was asked for: data, method, ε, steps, seed.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench.image_data import Digits, load
from bench.image_scores import Classifier, accuracy, inception_score, told_apart, train_classifier
from bench.pages import RESULTS, run_file, today
from bench.paper import prices
from bench.paper.cards import Cards
from bench.paper.claims import COMPARED, EPSILONS, POKER, STRATEGIES
from bench.paper.methods import REAL, WITHOUT_PRIVACY
from bench.paper.page import text_of
from bench.paper.runs import MIXTURE, Sizes, run

STORE, PAGE = RESULTS / "paper-all.json", RESULTS / "paper-all.md"
SIDE = 14
LONG = {"mnist": 5_000, "fashion_mnist": 5_000, POKER: 3_000}
SHORT = {"mnist": 1_000, "fashion_mnist": 1_000, POKER: 600}
SHORT_SLOW = 200
"""Of DPACGAN, whose step takes ten times as long: its gradients have no formulas."""
OURS = MIXTURE


@dataclass(frozen=True)
class Asked:
    """One run."""

    data: str
    method: str
    epsilon: float | None
    steps: int
    seed: int

    def __str__(self) -> str:
        private = "" if self.epsilon is None else f", ε = {self.epsilon:g}"
        return f"{self.data}, {self.method}{private}, {self.steps} steps, seed {self.seed}"


def wanted(steps: dict[str, int], seeds: int, *, slow_steps: int | None) -> list[Asked]:
    """What is run, the paper's own cells first, then its ablation, then the other ε of the other methods; seeds outside."""
    cells: list[tuple[str, str, float | None]] = []
    for data, epsilons in EPSILONS.items():
        first = epsilons[0]
        cells += [(data, method, None) for method in (REAL, WITHOUT_PRIVACY)]
        cells += [(data, "IDPGAN", epsilon) for epsilon in epsilons]
        cells += [(data, method, first) for method in COMPARED]
    for data, epsilons in EPSILONS.items():
        cells += [(data, name, epsilons[0]) for name in STRATEGIES if name != "all three (IDPGAN)"]
        cells += [(data, OURS, epsilon) for epsilon in epsilons if data != POKER]
    for data in ("mnist", POKER):
        cells += [(data, method, epsilon) for epsilon in EPSILONS[data][1:] for method in COMPARED]
    return [_asked(cell, seed, steps, slow_steps) for seed in range(seeds) for cell in cells]


def _asked(cell: tuple[str, str, float | None], seed: int, steps: dict[str, int], slow_steps: int | None) -> Asked:
    data, method, epsilon = cell
    taken = slow_steps if slow_steps and method == "DPACGAN" else steps[data]
    return Asked(data, method, epsilon, 0 if method in (REAL, OURS) else taken, seed)


def run_all(data: Path, *, steps: int | None, seeds: int, short: bool, only: str, minutes: float) -> None:
    """Make what is missing, until it is all there or the time is up."""
    began = time.monotonic()
    chosen = dict.fromkeys(LONG, steps) if steps else (SHORT if short else LONG)
    slow = SHORT_SLOW if short and not steps else None
    inputs = Inputs(data)
    for asked in [one for one in wanted(chosen, seeds, slow_steps=slow) if named_by(only, one)]:
        if (time.monotonic() - began) / 60.0 > minutes:
            break
        if asked not in {asked_of(row) for row in read()["runs"]}:
            add("runs", {**asdict(asked), "date": today(), **inputs.made(asked)})
            print(asked, flush=True)
    if "prices" not in read() and not only:
        add("prices", prices.as_json())
    write_page()


def named_by(words: str, asked: Asked) -> bool:
    """Whether its line has these words, from the beginning of one on: `mnist` is not `fashion_mnist`."""
    return f" {words}" in f" {asked}"


class Inputs:
    """Data and judges of each set, read once."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.images = cache(self._images)
        self.cards = cache(lambda: Cards.read(data))

    def made(self, asked: Asked) -> dict[str, Any]:
        """Scores and looks of one run."""
        sizes = Sizes(asked.steps, expected_batch=512, critic_steps=2, count=20_000, epochs=3)
        if asked.data == POKER:
            scores, looks, took = self.cards().run(asked.method, asked.epsilon, sizes, asked.seed)
            facts = {"most": self.cards().most, "tested_on": self.cards().tested_on}
        else:
            digits, judge = self.images(asked.data)
            if asked.method == REAL:
                scores, looks, took = _of_real(digits, judge, sizes), [], {}
            else:
                result = run(asked.method, asked.epsilon, digits, judge, sizes, asked.seed)
                scores, looks, took = result.scores, result.distances, {}
            facts = {"tested_on": "the 10,000 real test images"}
        rounded = {name: round(value, 4) for name, value in {**scores, **took}.items()}
        return {"scores": rounded, "looks": [[a, round(b, 2), round(c, 4)] for a, b, c in looks], **facts}

    def _images(self, name: str) -> tuple[Digits, Classifier]:
        digits = load(self.data / name, SIDE)
        return digits, train_classifier(digits.train[:20_000], digits.labels[:20_000], epochs=3, seed=0)


def _of_real(digits: Digits, judge: Classifier, sizes: Sizes) -> dict[str, float]:
    """Of as many real training images: the judge is the classifier that was trained on them."""
    told = told_apart(digits.test, digits.train[: sizes.count], seed=0)
    return {
        "accuracy": 100.0 * accuracy(judge, digits.test, digits.test_labels),
        "inception": inception_score(judge, digits.test),
        "js": told.js_bound,
        "from_half": told.from_half,
    }


def asked_of(row: dict[str, Any]) -> Asked:
    return Asked(row["data"], row["method"], row["epsilon"], row["steps"], row["seed"])


def read() -> dict[str, Any]:
    """What is stored so far."""
    stored: dict[str, Any] = json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else {"runs": []}
    return stored


def add(kind: str, fact: Any) -> None:
    """One run more, or the prices. Two processes may work at different sets: each reads again, one at a time."""
    with run_file("paper-all.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stored = read()
        if kind == "runs":
            stored["runs"].append(fact)
        else:
            stored[kind] = fact
        STORE.write_text("\n".join(_lines(stored)) + "\n", encoding="utf-8")
        write_page()


def _lines(stored: dict[str, Any]) -> Iterator[str]:
    """A run a line."""
    rest = {name: value for name, value in stored.items() if name != "runs"}
    yield "{"
    for name, value in rest.items():
        yield f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)},"
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in stored["runs"])
    yield f'"runs": [\n{rows}\n]'
    yield "}"


def write_page() -> None:
    PAGE.write_text(text_of(read()), encoding="utf-8")
