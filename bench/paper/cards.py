"""Poker Hand for the paper's comparison: every method on rows, judged by classifiers and by an Inception score."""

from __future__ import annotations

import dataclasses
import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from bench.image_scores import balanced_weights, inception_score_of, most_inception_score
from bench.paper.methods import REAL
from bench.paper.runs import ORDERS, Look, Sizes, plan_of, train
from bench.poker import COLD, LABEL, Split, draw, load
from service.methods.catalogue import parse_order
from service.methods.idpgan.resolve import with_sampling_probability
from workers.mechanism.secure_random import SecureRandom
from workers.methods.ganobfuscator.public import PublicTable
from workers.methods.idpgan.run import Run as IdpganRun
from workers.methods.interface import run_class
from workers.networks.auxiliary import AuxiliaryPerceptron
from workers.sources import GivenTable

if TYPE_CHECKING:
    from torch import Tensor, nn

    from service.methods.idpgan.price import TrainedOrder
    from workers.encoding.table import TableDomain
    from workers.mechanism import CriticBatch
    from workers.methods.idpgan.tables import TableIdpgan

EPOCHS, JUDGE_EPOCHS = 20, 60
"""Of the classifier as of `bench.poker`'s; after so few it is right without being sure, so the judges have more."""
TEST = Path("poker_hand") / "poker-hand-testing-first99998.csv.gz"


class AuxiliaryTable(PublicTable):
    """DPACGAN of rows, for this bench alone: the service offers it for images. The class is the last column."""

    def make_critic(self, order: TrainedOrder, domain: TableDomain) -> nn.Module:
        classes = domain.widths[-1]
        return AuxiliaryPerceptron(domain.total_width - classes, order.networks.critic_hidden, classes)

    def _batch_of(self, real: Tensor, present: Tensor, conditions: Tensor | None) -> CriticBatch:
        """As for images: of a generated row the critic sees no label."""
        batch = super()._batch_of(real, present, conditions)
        fake = batch.fake.clone()
        fake[:, -self.domain.widths[-1] :] = 0.0
        return dataclasses.replace(batch, fake=fake)


class AuxiliaryRun(IdpganRun):
    of_tables = AuxiliaryTable


@dataclass(frozen=True)
class Cards:
    """Rows to train on and to test on, and the judges of Inception scores."""

    split: Split

    @classmethod
    def read(cls, data: Path) -> Cards:
        """The committed 25,010 rows; tested on the first 99,998 rows of UCI's test file, or on a fifth of them without it."""
        test = data / TEST
        return cls(load(test if test.exists() else None))

    @property
    def labels(self) -> np.ndarray:
        return self._labels_of(self.split.train.codes)

    @property
    def tested_on(self) -> str:
        return f"{len(self.split.test):,} real rows"

    @cached_property
    def most(self) -> float:
        """No Inception score at the true shares of classes can be larger."""
        return most_inception_score(self.labels)

    @cached_property
    def judge(self) -> Any:
        return self._perceptron(self.split.train.codes, JUDGE_EPOCHS, 0)

    @cached_property
    def balanced_judge(self) -> Any:
        """Trained on as many rows of each class as of any other, so that it knows the rare ones: rows are repeated."""
        weights = balanced_weights(self.labels)
        units = self.split.train.units
        chosen = np.random.default_rng(0).choice(units, units, p=weights / weights.sum())
        return self._perceptron(self.split.train.codes[chosen], JUDGE_EPOCHS, 0)

    def scores(self, rows: np.ndarray, seed: int) -> dict[str, float]:
        """Accuracy in % of a perceptron on real test rows, and two Inception scores."""
        cards, labels, truth = self._cards_of(rows), self._labels_of(rows), self._labels_of(self.split.test)
        guessed = self._perceptron(rows, EPOCHS, seed).predict(self._cards_of(self.split.test))
        return {
            "accuracy": 100.0 * float((guessed == truth).mean()),
            "majority": 100.0 * float((truth == np.bincount(labels).argmax()).mean()),
            "inception": inception_score_of(self.judge.predict_proba(cards)),
            "balanced inception": inception_score_of(
                self.balanced_judge.predict_proba(cards), balanced_weights(labels)
            ),
        }

    def run(
        self, method: str, epsilon: float | None, sizes: Sizes, seed: int
    ) -> tuple[dict[str, float], list[Look], dict[str, float]]:
        """Scores, looks and seconds. As many synthetic rows as real ones."""
        if method == REAL:
            return self.scores(self.split.train.codes, seed), [], {}
        began, processor = time.monotonic(), time.process_time()
        trained = begin(method, epsilon, self.split, sizes, seed)
        trained.measure()
        looks = train(trained, sizes.steps)
        rows = draw(trained.release(), self.split.domain, self.split.train.units, seed)
        took = {"processor": time.process_time() - processor, "seconds": time.monotonic() - began}
        return self.scores(rows, seed), looks, took

    def _perceptron(self, codes: np.ndarray, epochs: int, seed: int) -> Any:
        widths = self.split.domain.widths[:-1]
        one_hot = OneHotEncoder(categories=[range(width) for width in widths])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fixed number of epochs is meant
            judge = make_pipeline(one_hot, MLPClassifier((64,), max_iter=epochs, random_state=seed))
            return judge.fit(self._cards_of(codes), self._labels_of(codes))

    def _cards_of(self, codes: np.ndarray) -> np.ndarray:
        return codes[:, :-1]

    def _labels_of(self, codes: np.ndarray) -> np.ndarray:
        return codes[:, -1].astype(np.int64)


def begin(method: str, epsilon: float | None, split: Split, sizes: Sizes, seed: int) -> TableIdpgan:
    """A run before its first event: from nothing, since the paper's methods have no tables to begin from."""
    if split.domain.columns[-1].name != LABEL:
        raise ValueError(f"{LABEL} must be the last column")
    knobs = ORDERS[method]
    start = COLD if knobs["method"] == "idpgan" else {}
    asked = {**knobs, **start, "epsilon": epsilon or 1.0, "steps": sizes.steps, "condition_on": LABEL}
    order: Any = with_sampling_probability(parse_order(asked), split.train.units)  # type: ignore[type-var]
    run = AuxiliaryRun if method == "DPACGAN" else run_class(order)
    rows, randomness = GivenTable(split.train, split.domain), SecureRandom.from_test_seed(seed)
    begun: Any = run(order, plan_of(order, epsilon), rows, randomness, torch.device("cpu"))
    trained: TableIdpgan = begun.gan
    return trained
