"""Train on synthetic, test on real: Poker Hand, IDPGAN against the same code with its three strategies off.

    python -m bench.poker --seeds 3 [--test FILE.csv[.gz]]

Without --test, a fifth of the committed file is held out; with it, all committed rows train and FILE tests.
Three classifiers with fixed settings, all reported, none chosen by its test score:
    gradient boosting   scikit-learn HistGradientBoostingClassifier, 100 rounds, on codes
    logistic regression scikit-learn LogisticRegression, C = 1, one-hot
    perceptron          scikit-learn MLPClassifier, one hidden layer of 64, 20 epochs, one-hot
Runs use test seeds so that they can be repeated: nothing made here may be published as private.
"""

from __future__ import annotations

import argparse
import io
import json
import platform
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from bench.pages import keep, run_file, today
from service.domain.table_schema import TableSchema
from service.methods.idpgan.order import IdpganOrder
from service.methods.idpgan.resolve import with_sampling_probability
from service.methods.pricing import price_order
from service.privacy.filters import open_budget
from service.privacy.statements import default_delta
from workers.encoding.table import EncodedTable, TableDomain, encode_table
from workers.generators.released import TableRelease
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan
from workers.sources import GivenTable
from workers.training import make_release

ROOT = Path(__file__).parent.parent
LABEL = "CLASS"
EPSILONS = (4.0, 15.0)
HELD_OUT_SHARE = 0.2
STRATEGIES_OFF: dict[str, Any] = {
    "noise_decay": {"kind": "constant"},
    "thresholds": {"kind": "fixed"},
    "clusters": {"kind": "none"},
}
COLD: dict[str, Any] = {"warm_start": {"kind": "none"}}
"""The paper's method has no tables to begin from."""
METHODS: dict[str, dict[str, Any]] = {"IDPGAN": COLD, "all three strategies off": COLD | STRATEGIES_OFF}


@dataclass(frozen=True)
class Split:
    train: EncodedTable
    test: np.ndarray  # (rows, columns) codes
    domain: TableDomain


@dataclass(frozen=True)
class Score:
    """Accuracy on real test rows of classifiers trained on one set of rows."""

    method: str
    epsilon: float | None
    seed: int | None
    accuracy: dict[str, float]
    cpu_seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--test", type=Path, help="real test rows; default: a fifth of the committed file")
    parser.add_argument("--jobs", type=int, default=2, help="trainings at the same time")
    arguments = parser.parse_args()

    split = load(arguments.test)
    runs = [(m, e, seed) for seed in range(1, arguments.seeds + 1) for e in EPSILONS for m in METHODS]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        futures = [pool.submit(run, split, method, epsilon, seed) for method, epsilon, seed in runs]
        scores = [score(split.train.codes, split, "real training rows", None, None, 0.0)]
        for future in futures:
            scores.append(future.result())
            write(split, scores, test=arguments.test)  # after every run: an interrupted bench keeps what it has


def load(test: Path | None) -> Split:
    schema = TableSchema.model_validate_json((ROOT / "examples" / "poker_hand.schema.json").read_bytes())
    domain = TableDomain.from_schema(schema, numeric_bins=32)
    rows = pl.read_csv(ROOT / "examples" / "poker_hand.csv")
    if test is None:
        rows = rows.sample(fraction=1.0, shuffle=True, seed=0)
        held_out = int(len(rows) * HELD_OUT_SHARE)
        rows, tested = rows[held_out:], rows[:held_out]
    else:
        first = pl.read_csv(test, has_header=False, n_rows=1).row(0)
        tested = pl.read_csv(
            test, has_header=first[-1] == LABEL, new_columns=rows.columns, schema_overrides=rows.dtypes
        )
    return Split(encode(rows, domain), encode(tested, domain).codes, domain)


def encode(rows: pl.DataFrame, domain: TableDomain) -> EncodedTable:
    parquet = io.BytesIO()
    rows.write_parquet(parquet)
    return encode_table(parquet.getvalue(), domain, units=len(rows))


def run(split: Split, method: str, epsilon: float, seed: int) -> Score:
    """Train one generator at (epsilon, the service's default δ), draw as many rows as it was trained on, score them."""
    torch.set_num_threads(1)
    started = time.process_time()
    units = split.train.units
    order = with_sampling_probability(
        IdpganOrder.model_validate({"method": "idpgan", "epsilon": epsilon, "condition_on": LABEL, **METHODS[method]}),
        units,
    )
    price = price_order(order, open_budget(epsilon, default_delta(units)))
    rows = GivenTable(split.train, split.domain)
    made = make_release(order, Plan(price.events), rows, SecureRandom.from_test_seed(seed))
    trained = cast("TableRelease", made)
    cpu_seconds = time.process_time() - started
    return score(draw(trained, split.domain, units, seed), split, method, epsilon, seed, cpu_seconds)


@torch.no_grad()
def draw(trained: TableRelease, domain: TableDomain, rows: int, seed: int) -> np.ndarray:
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(rows, trained.noise_dimension, generator=generator)
    shares = torch.tensor(trained.condition_frequencies)
    condition = torch.multinomial(shares, rows, replacement=True, generator=generator)
    logits = trained.generator(noise, condition)
    perturbed = logits - torch.log(-torch.log(torch.rand(logits.shape, generator=generator)))
    return torch.stack([part.argmax(dim=1) for part in perturbed.split(domain.widths, dim=1)], dim=1).numpy()


def score(
    rows: np.ndarray, split: Split, method: str, epsilon: float | None, seed: int | None, cpu_seconds: float
) -> Score:
    label = split.domain.index(LABEL)
    known, wanted = np.delete(rows, label, axis=1), rows[:, label]
    asked, truth = np.delete(split.test, label, axis=1), split.test[:, label]
    one_hot = OneHotEncoder(categories=[range(w) for i, w in enumerate(split.domain.widths) if i != label])
    classifiers = {
        "gradient boosting": HistGradientBoostingClassifier(max_iter=100, early_stopping=False, random_state=0),
        "logistic regression": make_pipeline(one_hot, LogisticRegression(max_iter=500)),
        "perceptron": make_pipeline(one_hot, MLPClassifier((64,), max_iter=20, random_state=0)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fixed number of epochs is meant, converged or not
        accuracy = {
            name: float((c.fit(known, wanted).predict(asked) == truth).mean()) for name, c in classifiers.items()
        }
    majority = np.bincount(wanted).argmax()
    accuracy["majority class"] = float((truth == majority).mean())
    print(f"{method}, epsilon {epsilon}, seed {seed}: {accuracy} in {cpu_seconds:.0f} s", flush=True)
    return Score(method, epsilon, seed, accuracy, cpu_seconds)


def write(split: Split, scores: list[Score], *, test: Path | None) -> None:
    tested = "a held-out fifth of the committed file" if test is None else test.name
    facts = {
        "date": today(),
        "train_rows": split.train.units,
        "test_rows": len(split.test),
        "test": tested,
        "delta": default_delta(split.train.units),  # of the dataset; one release is calibrated at half of it
        "machine": f"{platform.machine()}, torch {torch.__version__}",
        "scores": [asdict(entry) for entry in scores],
    }
    run_file(f"poker-{today()}.json").write_text(json.dumps(facts, indent=1) + "\n")
    keep("poker", table(facts, scores))


def table(facts: dict[str, Any], scores: list[Score]) -> str:
    names = list(scores[0].accuracy)
    lines = [
        (
            f"{facts['machine']}; {facts['train_rows']} training rows, as many synthetic ones; tested on {facts['test_rows']} real rows "
            f"({facts['test']}); δ = {facts['delta']:.1e}. Accuracy in %, mean (standard deviation) over seeds. All "
            "classifiers have fixed settings and all are shown; `python -m bench.poker` says which they are."
        ),
        "",
        f"| training rows | ε | {' | '.join(names)} | CPU s |",
        f"|---|---|{'---|' * len(names)}---|",
    ]
    for method, epsilon in dict.fromkeys((entry.method, entry.epsilon) for entry in scores):
        group = [entry for entry in scores if (entry.method, entry.epsilon) == (method, epsilon)]
        cells = []
        for name in names:
            values = 100.0 * np.array([entry.accuracy[name] for entry in group])
            cells.append(f"{values.mean():.2f}" + (f" ({values.std(ddof=1):.2f})" if len(values) > 1 else ""))
        seconds = np.mean([entry.cpu_seconds for entry in group])
        shown = "–" if epsilon is None else f"{epsilon:g}"
        lines.append(f"| {method} | {shown} | {' | '.join(cells)} | {seconds:.0f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
