"""Attacks that look at outputs alone: for every kind of release the event that tells two neighbouring datasets apart best.

The adversary knows both datasets, the code and the price list. It sees released numbers and nothing else. It asks of them whatever can be
asked: are they beyond a threshold, are they exactly this value, odd or even, what are their last digits, can the other dataset have such an
output at all? On a quarter of the outputs it chooses the event by which the two datasets differ most, on the others that one event is counted.

A release is run once on each of two neighbours by the code that does so for a customer. What it hands to `release` or `release_counts` is
then released again and again, by these same functions, with fresh noise each time.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from bench.audit.bounds import Errors, clopper_pearson_upper, direct_epsilon, gaussian_signal
from bench.audit.worlds import DOMAIN, FIRST_UNIT, LARGE, make_canaries, null_table, order_for
from bench.orders import budget_of_one_release
from service.domain.table_schema import TableSchema
from service.methods.dpgm.order import DpgmOrder
from service.methods.dpgm.price import CLUSTER_COUNTS, CLUSTER_MEANS
from service.methods.dpsyn.order import DpsynOrder
from service.methods.dpsyn.price import LATENT_MOMENTS
from service.methods.idpgan.order import IdpganOrder
from service.methods.idpgan.price import RELEVANCE
from service.methods.image_release.order import ImageReleaseOrder
from service.methods.knobs import Order
from service.methods.marginals.order import MarginalsOrder
from service.methods.marginals.price import ONE_WAY_TABLES, PAIR_SCORES
from service.methods.mixture.order import MixtureOrder
from service.methods.mixture.price import CELL_MEANS, CELL_MOMENTS, CLASS_MEANS, LEANINGS, SHARED_MOMENTS, TONES
from service.methods.pategan.order import PateganOrder
from service.methods.pricing import price_order
from service.methods.rdpcgan.order import RdpcganOrder
from service.privacy.accounting import epsilon_of
from service.privacy.events import Events, GaussianEvent, SampledStepEvent
from workers.encoding.images import EncodedImages
from workers.encoding.table import ABSENT, EncodedTable, TableDomain
from workers.hooks import UNATTENDED
from workers.mechanism import PrivateSum
from workers.mechanism.image_moments import (
    NO_CELL,
    Coefficients,
    WholeVectors,
    first_moments,
    leaning_counts,
    second_moments,
    shared_moments,
    tone_counts,
)
from workers.mechanism.noise import GRID_ROUNDING_VARIANCE, GRID_STD, allocate
from workers.mechanism.sampling import poisson_sample
from workers.mechanism.secure_random import SecureRandom
from workers.methods import labels as label_frequencies
from workers.methods import whole_sums
from workers.methods.dpgm import run as dpgm
from workers.methods.dpsyn import run as dpsyn
from workers.methods.idpgan import training as idpgan
from workers.methods.idpgan.step_knobs import bought
from workers.methods.idpgan.tables import TableIdpgan
from workers.methods.image_release import run as image_release
from workers.methods.marginals.measure import releases, trees
from workers.methods.marginals.measure.layouts import looks_of
from workers.methods.marginals.method import Marginals
from workers.methods.mixture.measuring import LEANING_BINS, ImageMixture
from workers.methods.mixture.tones import TONE_BINS
from workers.methods.pategan import run as pategan
from workers.methods.rdpcgan import coded
from workers.methods.rdpcgan.coded import CodedTables
from workers.numerics.discrete_gaussian import Table, table_for
from workers.plan import Plan
from workers.sources import GivenImages, GivenTable

DELTA = 1e-5
EPSILONS = (0.1, 1.0, 10.0, 20.0)
ROWS_PER_UNIT = (1, 10, 1_000)
LARGE_NOISE = 2.0**48
AT_ONCE = 50_000
"""Releases drawn in one call."""
ATTACKS = 256
"""At least as many as there are: what the bounds of all of them together hold with is 95 %."""
MOST_FAILURES = 0.05 / (3 * ATTACKS)
"""Of each of an attack's three bounds."""
MORE_TRIALS_BELOW, MORE_TRIALS = 1.0, 4
"""Where ε is small the two datasets look alike, and a bound needs so many times the trials."""
MOST_COLUMNS = 3
"""Released numbers that are looked at one by one, of those that a unit moves most."""

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


# -- releases, heard once and repeated --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """One call of `release` or `release_counts`, as a method made it."""

    function: Callable[..., tuple[Tensor, ...]]
    private: PrivateSum
    knobs: dict[str, Any]

    @property
    def noise_stds(self) -> tuple[float, ...]:
        """Of every value, in the order of the values."""
        private = self.private
        by_group = self.knobs.get("noise_stds")
        if by_group is None:
            sizes = [sum(private.values[tensor].numel() for tensor in group) for group in private.groups]
            allocation = self.knobs.get("allocation", "least_noise")
            noise_multiplier = self.knobs["noise_multiplier"]
            by_group = allocate(private.sensitivities, sizes, noise_multiplier=noise_multiplier, allocation=allocation)
        of = {tensor: std for group, std in zip(private.groups, by_group, strict=True) for tensor in group}
        return tuple(of[tensor] for tensor in range(len(private.values)))

    @property
    def is_on_grid(self) -> bool:
        return "noise_stds" not in self.knobs and self.private.values[0].is_floating_point()


@contextlib.contextmanager
def heard(module: ModuleType) -> Iterator[list[Call]]:
    """The calls that this module makes meanwhile, of `release` and `release_counts`."""
    real = {name: getattr(module, name) for name in ("release", "release_counts") if hasattr(module, name)}
    calls: list[Call] = []

    def listening(function: Callable[..., tuple[Tensor, ...]]) -> Callable[..., tuple[Tensor, ...]]:
        def call(private: PrivateSum, **knobs: Any) -> tuple[Tensor, ...]:
            calls.append(Call(function, private, {name: knob for name, knob in knobs.items() if name != "randomness"}))
            return function(private, **knobs)

        return call

    for name, function in real.items():
        setattr(module, name, listening(function))
    try:
        yield calls
    finally:
        for name, function in real.items():
            setattr(module, name, function)


class Repeated(SecureRandom):
    """Noise on whole numbers for many releases at once: (copies, *shape) where (*shape) is asked for."""

    copies: int | None = None

    def discrete_gaussian(self, *shape: int, fractions: Tensor | None = None, **knobs: Any) -> Tensor:
        more = (self.copies,) if self.copies is not None and fractions is None else ()
        return super().discrete_gaussian(*more, *shape, fractions=fractions, **knobs)

    def normals(self, *shape: int, **knobs: Any) -> Tensor:
        return super().normals(*(() if self.copies is None else (self.copies,)), *shape, **knobs)


class Steered(Repeated):
    """Random words that make the first value as extreme as it can be, or as `distance` whole numbers at least."""

    def __init__(self) -> None:
        super().__init__()
        self.on_the_left, self.distance = False, 0.0
        self._aim: list[int] = []
        self._script: list[int] = []

    def discrete_gaussian(self, *shape: int, variance: float, fractions: Tensor | None = None, **knobs: Any) -> Tensor:
        table = table_for(variance, is_centred=fractions is None)
        self._aim = [_word_of_tail(table, on_the_left=self.on_the_left)]
        blocks = max(1, math.ceil((self.distance + table.first) / table.block) + 1)
        # Beyond the table: so many further blocks, then no more, then whatever keeps the value.
        self._script = [0] * blocks + [2**64 - 1] + [0] * 64
        return super().discrete_gaussian(*shape, variance=variance, fractions=fractions, **knobs)

    def normals(self, *shape: int, **knobs: Any) -> Tensor:
        self._aim = [0, 2**52 if self.on_the_left else 0]  # the smallest uniform: the largest radius; then the angle
        return super().normals(*shape, **knobs)

    def _words(self, count: int, dtype: torch.dtype, device: torch.device = torch.device("cpu")) -> Tensor:  # noqa: B008
        words = super()._words(count, dtype, device)
        words[: len(self._aim)] = torch.tensor(self._aim, dtype=dtype)
        self._aim = []
        return words

    def _bits(self, count: int) -> int:
        return self._script.pop(0) if self._script else super()._bits(count)


def _word_of_tail(table: Table, *, on_the_left: bool) -> int:
    return int(table.cumulative[table.buckets if on_the_left else table.buckets + 1])


def rounded_normals(
    private: PrivateSum, *, noise_stds: Sequence[float], noise_multiplier: float, randomness: SecureRandom
) -> tuple[Tensor, ...]:
    """Noise as it was until 2026-11-27, here only to show that the attacks find what was wrong with it: float64 normals, rounded."""
    del noise_multiplier
    return tuple(
        value.long() + (std * randomness.normals(*value.shape)).round().long()
        for value, std in zip(private.values, noise_stds, strict=True)
    )


# -- two neighbours ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Neighbours:
    """What is released of a dataset without one unit, and with it. All of it is charged by `events`."""

    without: list[Call]
    with_unit: list[Call]
    events: Events

    @property
    def sampling_probability(self) -> float:
        return self.events[0].sampling_probability

    def noise_free(self) -> tuple[Floats, Floats, Floats]:
        """All numbers before noise, of both; and the noise_std of each."""
        sums = [
            np.concatenate([value.double().numpy().ravel() for call in calls for value in call.private.values])
            for calls in (self.without, self.with_unit)
        ]
        stds = [
            np.full(value.numel(), std)
            for call in self.without
            for value, std in zip(call.private.values, call.noise_stds, strict=True)
        ]
        return sums[0], sums[1], np.concatenate(stds)


SCHEMA = TableSchema.model_validate(
    {
        "fields": [
            {"name": "smoker", "type": "boolean", "constraints": {"required": True}},
            {"name": "colour", "type": "string", "constraints": {"enum": ["r", "g"], "required": True}},
            {"name": "label", "type": "boolean", "constraints": {"required": True}},
        ]
    }
)
SCHEMA_OF_VALUES = TableSchema.model_validate(
    {
        "fields": [
            {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99, "required": True}},
            {"name": "label", "type": "boolean", "constraints": {"required": True}},
        ]
    }
)
UNITS = 4
CPU = torch.device("cpu")


def _table(rows_per_unit: int, *, has_unit: bool, columns: int = 3, places: bool = False) -> EncodedTable:
    """The first unit has all its rows in one cell, or none; the others have one row there, and nulls."""
    codes = np.full((UNITS * rows_per_unit, columns), ABSENT, dtype=np.uint16)
    codes[rows_per_unit::rows_per_unit] = 1
    if has_unit:
        codes[:rows_per_unit] = 1
    starts = None if rows_per_unit == 1 else np.arange(0, len(codes) + 1, rows_per_unit, dtype=np.int64)
    absent = np.iinfo(np.uint32).max
    own = {0: np.where(codes[:, 0] == ABSENT, absent, 1).astype(np.uint32)} if places else {}
    return EncodedTable(codes, UNITS, starts, rows_per_unit, own)


def _priced(order: Order, epsilon: float) -> Events:
    """A release that has the whole budget of (ε, 2δ) is calibrated to be (ε, δ)-DP."""
    return price_order(order, budget_of_one_release(epsilon, DELTA)).events


def _marginals_order(**knobs: Any) -> MarginalsOrder:
    declared = {"pairs": "all", "pair_groups": "declared", "condition_on": "label"}
    return MarginalsOrder.model_validate(
        {"method": "marginals", "epsilon": 1.0, "numeric_bins": 4, **declared, **knobs}
    )


def _one_gaussian(epsilon: float, purpose: str) -> Events:
    """What an order for a single Gaussian release of this (ε, δ) is charged with."""
    (event,) = _priced(_marginals_order().model_copy(update={"epsilon": epsilon}), epsilon)
    return (GaussianEvent(purpose, event.joint_noise_multiplier),)


def _measured(
    order: MarginalsOrder, events: Events, rows_per_unit: int, act: Callable[[Marginals], object], **knobs: Any
) -> Neighbours:
    schema = knobs.pop("schema", SCHEMA)
    domain = TableDomain.from_schema(schema, numeric_bins=order.numeric_bins)
    both = []
    for has_unit in (False, True):
        table = _table(rows_per_unit, has_unit=has_unit, columns=len(schema.fields), **knobs)
        randomness = SecureRandom.from_test_seed(1)
        with heard(releases) as calls:
            act(Marginals(order, Plan(events), table, domain, randomness, CPU, keeps_bins=True))
        both.append(calls)
    return Neighbours(both[0], both[1], events)


def tables(epsilon: float, rows_per_unit: int) -> Neighbours:
    """A whole measurement: one- and two-way tables, each with noise of its own."""
    order = _marginals_order(epsilon=epsilon)
    return _measured(order, _priced(order, epsilon), rows_per_unit, Marginals.measure)


def tables_and_values(epsilon: float, rows_per_unit: int) -> Neighbours:
    """A whole measurement of tables and of the tree of an open range, each node of which is cut: two events."""
    order = _marginals_order(epsilon=epsilon, tree_precision_share=0.2)
    events = _priced(order, epsilon)
    with patch.object(trees, "STANDARD_DEVIATIONS", -1e3):
        return _measured(order, events, rows_per_unit, Marginals.measure, schema=SCHEMA_OF_VALUES, places=True)


def first_looks(epsilon: float, rows_per_unit: int) -> Neighbours:
    """Single columns of all rows and within the label, which share one event."""
    order, events = _marginals_order(pairs="few_or_all"), _one_gaussian(epsilon, ONE_WAY_TABLES)

    def look(method: Marginals) -> None:
        method.releases.one_way_tables(looks_of(order, method.layout))

    return _measured(order, events, rows_per_unit, look)


def scores(epsilon: float, rows_per_unit: int) -> Neighbours:
    """Distances of three pairs of columns from counts of zero: a unit moves all of them as far as it can."""
    order, events = _marginals_order(pairs="few_or_all", condition_on=None), _one_gaussian(epsilon, PAIR_SCORES)

    def score(method: Marginals) -> None:
        pairs = combinations(method.layout.free, 2)
        expected = {pair: np.zeros(method.layout.shape(pair), dtype=np.int64) for pair in pairs}
        method.releases.scores(method.layout, expected)

    return _measured(order, events, rows_per_unit, score)


SIDE = 4
RECORDS = 3
ONE_STEP = SampledStepEvent(1.0, 1.0, None, 1)
SMALL_AUTOENCODER = {"hidden_units": 2, "latent_numbers": 1}


def of_images(purpose: str, measure: Callable[[ImageMixture], PrivateSum], epsilon: float) -> Neighbours:
    """A white image among black ones: it is as far from them as a norm allows."""
    order = MixtureOrder(method="mixture", epsilon=1.0, cells=1, upright=False, coefficients=4)
    events = _one_gaussian(epsilon, purpose)
    shares = {CLASS_MEANS: (order.count_share, 1.0 - order.count_share)}
    rest = 1.0 - order.count_share - order.mean_share
    shares[CELL_MOMENTS] = (order.count_share, order.mean_share, rest)
    shares[CELL_MEANS] = (order.mean_share, 1.0 - order.mean_share)
    both = []
    for has_unit in (False, True):
        pixels = np.zeros((RECORDS, SIDE * SIDE), dtype=np.uint8)
        pixels[0] = 255
        labels = np.array([1 if has_unit else NO_CELL, 0, NO_CELL])
        method = ImageMixture(
            order, Plan(events), EncodedImages(pixels, labels, (SIDE, SIDE, 1), 2), SecureRandom.from_test_seed(1)
        )
        with heard(whole_sums) as calls:
            method._release(purpose, partial(measure, method), shares.get(purpose, (1.0,)))  # noqa: SLF001
        both.append(calls)
    return Neighbours(both[0], both[1], events)


def _moments(method: ImageMixture, function: Callable[..., PrivateSum], norm: float) -> PrivateSum:
    records = Coefficients(method.images.pixels, method.basis, method.scale)
    none = np.zeros((method.classes, method.basis.shape[1]))
    return function(records, method.images.labels, centres=none, radius=math.floor(norm * method.scale))


IMAGE_RELEASES: dict[str, tuple[str, Callable[[ImageMixture], PrivateSum]]] = {
    "images: counts and means of classes": (CLASS_MEANS, lambda m: _moments(m, first_moments, m.record_norm)),
    "images: counts and means of cells": (CELL_MEANS, lambda m: _moments(m, first_moments, m.centred_norm)),
    "images: shared products": (SHARED_MOMENTS, lambda m: _moments(m, shared_moments, m.centred_norm)),
    "images: moments of cells": (CELL_MOMENTS, lambda m: _moments(m, second_moments, m.centred_norm)),
    "images: tones": (TONES, lambda m: tone_counts(m.images.pixels, m.images.labels, bins=TONE_BINS)),
    "images: leanings": (
        LEANINGS,
        lambda m: leaning_counts(
            np.zeros(RECORDS, dtype=np.int64), m.images.labels, classes=m.classes, bins=LEANING_BINS
        ),
    ),
}


def single_images(epsilon: float, _rows_per_unit: int) -> Neighbours:
    """A white image, released by itself, or none: one coefficient and its singular value, which it moves as far as a norm allows."""
    order = ImageReleaseOrder(
        method="image_release", epsilon=epsilon, unit="image", coefficients=1, singular_values_share=0.3
    )
    events = _priced(order, epsilon)
    both = []
    for label in (NO_CELL, 0):
        images = EncodedImages(np.full((1, SIDE * SIDE), 255, np.uint8), np.array([label]), (SIDE, SIDE, 1), 0)
        run = image_release.Run(order, Plan(events), GivenImages(images), SecureRandom.from_test_seed(1), CPU)
        with heard(image_release) as calls:
            run.measure()
        both.append(calls)
    return Neighbours(both[0], both[1], events)


def labels(epsilon: float, rows_per_unit: int) -> Neighbours:
    """Label counts of an IDPGAN run."""
    return _label_counts(_one_gaussian(epsilon, "label_counts"), rows_per_unit)


def labels_under_large_noise(rows_per_unit: int) -> Neighbours:
    """The most noise that whole numbers may have: they cost next to nothing, and must tell nothing."""
    return _label_counts((GaussianEvent("label_counts", LARGE_NOISE / rows_per_unit),), rows_per_unit)


def _label_counts(events: Events, rows_per_unit: int) -> Neighbours:
    order = order_for(1.0, 1, condition_on="label")
    both = []
    for present in (None, FIRST_UNIT):
        table = null_table(UNITS, present, rows_per_unit=rows_per_unit)
        method = make_canaries(order, (*events, ONE_STEP), table, 1)
        with heard(label_frequencies) as calls:
            method.measure()
        both.append(calls)
    return Neighbours(both[0], both[1], events)


def step(epsilon: float, rows_per_unit: int, sampling_probability: float = 1.0) -> Neighbours:
    """A private step of IDPGAN: clipped gradient sum and histogram of norms."""
    priced = order_for(sampling_probability, 1, thresholds={"kind": "adaptive", "noise_ratio": 2.0})
    events = _priced(priced.model_copy(update={"epsilon": epsilon}), epsilon)
    absent, present = (
        _step_calls(priced, events, null_table(UNITS, unit, rows_per_unit=rows_per_unit), wait=unit is not None)
        for unit in (None, FIRST_UNIT)
    )
    without, with_unit = zip(*map(_narrowed, absent, present), strict=True)
    return Neighbours(list(without), list(with_unit), events)


def _step_calls(order: IdpganOrder, events: Events, table: EncodedTable, *, wait: bool) -> list[Call]:
    """wait: until the unit is in the draw."""
    method = make_canaries(order, events, table, 1)
    while True:
        method.restart(events, table)
        with heard(idpgan) as calls:
            method.critic_step()
        if not wait or any(bool(value.any()) for value in calls[0].private.values):
            return calls


def autoencoder_step(epsilon: float, rows_per_unit: int) -> Neighbours:
    """A private step of RDP-CGAN: the clipped gradient of encoder and decoder together."""
    order = RdpcganOrder.model_validate(
        {
            "method": "rdpcgan",
            "epsilon": epsilon,
            "sampling_probability": 1.0,
            "steps": 1,
            "autoencoder": {"steps": 1, "latent": 2, "hidden": [3], "clip_norm": 0.01},
            "networks": {"noise_dimension": 4, "generator_hidden": [8], "critic_hidden": [4, 3]},
        }
    )
    events = _priced(order, epsilon)[:1]
    both = []
    for present in (None, FIRST_UNIT):
        table = null_table(UNITS, present, rows_per_unit=rows_per_unit)
        torch.manual_seed(1)
        method = CodedTables(order, Plan(events), table, DOMAIN, SecureRandom.from_test_seed(1), CPU)
        with heard(coded) as calls:
            method.autoencoder_step()
        both.append(calls)
    without, with_unit = zip(*map(_narrowed, *both), strict=True)
    return Neighbours(list(without), list(with_unit), events)


def clusters(epsilon: float, rows_per_unit: int) -> Neighbours:
    """All that DPGM releases before its steps: a round of k-means and the counts of clusters.

    The adversary says what the features of a record are: on one axis, and just as long as the clip norm.
    """
    order = DpgmOrder.model_validate(
        {
            "method": "dpgm",
            "epsilon": epsilon,
            "sampling_probability": 1.0,
            "clusters": 2,
            "cluster_rounds": 1,
            "features": 4,
            "autoencoder": SMALL_AUTOENCODER,
        }
    )
    (whole,) = _one_gaussian(epsilon, CLUSTER_MEANS)
    noise_multiplier = math.sqrt(2.0) * whole.joint_noise_multiplier
    events = GaussianEvent(CLUSTER_MEANS, noise_multiplier), GaussianEvent(CLUSTER_COUNTS, noise_multiplier)
    both = []
    for present in (None, FIRST_UNIT):
        table = null_table(UNITS, present, rows_per_unit=rows_per_unit)
        source = GivenTable(table, DOMAIN)
        run = dpgm.Run(order, Plan((*events, ONE_STEP)), source, SecureRandom.from_test_seed(1), CPU)
        fourier = run._fourier()  # noqa: SLF001
        vectors = np.zeros((run.records.most, order.features), dtype=np.int32)
        vectors[:, 0] = int(order.feature_norm * fourier.scale)
        run.features = WholeVectors(vectors, fourier.longest)
        with heard(whole_sums) as calls:
            run.measure()
        both.append(calls)
    return Neighbours(both[0], both[1], events)


def latent_moments(epsilon: float, rows_per_unit: int) -> Neighbours:
    """A round of DP-SYN's EM: responsibilities, codes and their products.

    The adversary says what the encoder is, which is public: it codes every record as a number that is clipped.
    """
    order = DpsynOrder.model_validate(
        {
            "method": "dpsyn",
            "epsilon": epsilon,
            "sampling_probability": 1.0,
            "condition_on": "label",
            "gaussians": 1,
            "em_rounds": 1,
            "latent_norm": 1.0,
            "autoencoder": SMALL_AUTOENCODER,
        }
    )
    events = _one_gaussian(epsilon, LATENT_MOMENTS)
    both = []
    for present in (None, FIRST_UNIT):
        table = null_table(UNITS, present, rows_per_unit=rows_per_unit)
        run = dpsyn.Run(order, Plan(events), GivenTable(table, DOMAIN), SecureRandom.from_test_seed(1), CPU)
        run.averaged.code_bias.fill_(LARGE)
        with heard(whole_sums) as calls:
            run.gaussians(UNATTENDED)
        both.append(calls)
    return Neighbours(both[0], both[1], events)


def bought_relevance(epsilon: float, rows_per_unit: int) -> Neighbours:
    """The relevance of inputs that IDPGAN buys.

    The adversary says what the critic is, which is public at its beginning: it looks at the cells of the unit's record and no others, so that
    relevance is larger than that of generated records, and is clipped.
    """
    order = order_for(1.0, 1, private_step={"importance": {"groups": 2, "relevance": "bought"}})
    events = _one_gaussian(epsilon, RELEVANCE)
    others = torch.ones(sum(DOMAIN.widths), dtype=torch.bool)
    others[np.cumsum([0, *DOMAIN.widths[:-1]]) + null_table(1, FIRST_UNIT).codes[0]] = False
    both = []
    for present in (None, FIRST_UNIT):
        table = null_table(UNITS, present, rows_per_unit=rows_per_unit)
        method = make_canaries(order, (*events, ONE_STEP), table, 1, TableIdpgan)
        method.tensors[0].data[:, others] = 0.0
        with heard(bought) as calls:
            method.measure()
        both.append(calls)
    without, with_unit = zip(*map(_narrowed, *both), strict=True)
    return Neighbours(list(without), list(with_unit), events)


class _Following:
    """Teachers of which the first takes every record for real if its unit is there, and the others none."""

    def __init__(self, votes: Tensor) -> None:
        self._votes = votes

    def step(self, *_: Tensor) -> None:
        """They learn nothing."""

    def votes(self, _records: Tensor) -> Tensor:
        return self._votes


def votes(epsilon: float, rows_per_unit: int) -> Neighbours:
    """The votes of a step of PATE-GAN, where the adversary says what teachers make of a unit."""
    records, teachers = 4, 3
    order = PateganOrder(method="pategan", epsilon=epsilon, steps=1, votes_per_step=records, teachers=teachers)
    events = _priced(order, epsilon)
    both = []
    for present in (None, FIRST_UNIT):
        table = null_table(UNITS, present, rows_per_unit=rows_per_unit)
        run = pategan.Run(order, Plan(events), GivenTable(table, DOMAIN), SecureRandom.from_test_seed(1), CPU)
        run.begin(UNATTENDED)
        following = torch.zeros(teachers, records, dtype=torch.bool)
        following[0] = present is not None
        run.teachers = _Following(following)  # type: ignore[assignment]
        with heard(pategan) as calls:
            run.student_step()
        both.append(calls)
    return Neighbours(both[0], both[1], events)


def _narrowed(without: Call, with_unit: Call) -> tuple[Call, Call]:
    """Without the numbers that the unit does not move, but one: all have noise of their own, and one group has one noise_std."""
    if len(without.private.groups) != 1:
        raise ValueError("several groups share noise by their size")
    flat = [torch.cat([value.flatten() for value in call.private.values]) for call in (without, with_unit)]
    moved = flat[0] != flat[1]
    kept = torch.cat((moved.nonzero().flatten(), (~moved).nonzero().flatten()[:1]))
    first, second = (
        replace(call, private=PrivateSum((own[kept],), ((0,),), call.private.sensitivities))
        for call, own in zip((without, with_unit), flat, strict=True)
    )
    return first, second


# -- outputs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outputs:
    """What an adversary looks at: (trials,) the best projection, and (trials, columns) single numbers as whole numbers of their grid."""

    projection: Floats
    places: Whole
    remainders: Whole
    """(trials, columns) the last bits of numbers in float64, or of nothing."""


@dataclass(frozen=True)
class Seen:
    """Which numbers are looked at, in what units."""

    weights: Floats
    columns: NDArray[np.intp]
    spacings: Floats

    @classmethod
    def of(cls, neighbours: Neighbours) -> Seen:
        without, with_unit, stds = neighbours.noise_free()
        shift = with_unit - without
        distance = np.abs(shift) / stds
        columns = np.argsort(-distance, kind="stable")[:MOST_COLUMNS]
        on_grid = np.concatenate(
            [np.full(v.numel(), call.is_on_grid) for call in neighbours.without for v in call.private.values]
        )
        spacings = np.where(on_grid, stds * (1.0 + 1e-12) / math.sqrt(GRID_STD**2 - GRID_ROUNDING_VARIANCE), 1.0)
        return cls(shift / stds**2 / np.abs(shift / stds).max(), columns[distance[columns] > 0.0], spacings)

    def look(self, released: Sequence[Tensor], copies: int, without: Floats) -> Outputs:
        """The noise-free value without the unit is subtracted in a projection: float64 then has room for its digits."""
        flat = torch.cat([value.reshape(copies, -1) for value in released], dim=1)
        projection = (flat.double().numpy() - without) @ self.weights
        own = flat[:, torch.from_numpy(self.columns)]
        if not own.is_floating_point():
            return Outputs(projection, own.numpy(), np.zeros(own.shape, dtype=np.int64))
        numbers = own.numpy()
        spacings = self.spacings[self.columns]
        places = np.rint(numbers / spacings)
        off_grid = (numbers - places * spacings).view(np.int64) % 1_021  # of a float, whatever it is
        last_bits = np.ascontiguousarray(numbers).view(np.int64) & 7
        return Outputs(projection, places.astype(np.int64), off_grid * 8 + last_bits)


def drawn_outputs(neighbours: Neighbours, seen: Seen, *, with_unit: bool, trials: int, randomness: Repeated) -> Outputs:
    """Independent outputs of one of the two datasets."""
    parts = []
    calls = neighbours.with_unit if with_unit else neighbours.without
    without = neighbours.noise_free()[0]
    for start in range(0, trials, AT_ONCE):
        copies = min(AT_ONCE, trials - start)
        is_in = np.ones(copies, dtype=np.bool_)
        if neighbours.sampling_probability < 1.0:
            is_in[:] = False
            # Every trial's coin is that of one unit of a large dataset.
            drawn = poisson_sample(
                units=copies, sampling_probability=neighbours.sampling_probability, randomness=randomness
            )
            is_in[drawn] = True
        released: list[Tensor] = []
        for call, absent in zip(calls, neighbours.without, strict=True):
            released += _released(call, absent, is_in, randomness)
        parts.append(seen.look(released, copies, without))
    return Outputs(
        np.concatenate([part.projection for part in parts]),
        np.concatenate([part.places for part in parts]),
        np.concatenate([part.remainders for part in parts]),
    )


def _released(call: Call, absent: Call, is_in: NDArray[np.bool_], randomness: Repeated) -> tuple[Tensor, ...]:
    """(copies, *shape) of every value. Whole numbers stay as they are and get many noises; others are repeated."""
    private, copies = call.private, len(is_in)
    if is_in.all() and not call.is_on_grid:
        randomness.copies = copies
    else:
        randomness.copies = None
        coins = torch.from_numpy(is_in)[:, None]
        values = tuple(
            torch.where(coins, own.flatten(), other.flatten())
            for own, other in zip(private.values, absent.private.values, strict=True)
        )
        private = replace(private, values=values)
    return call.function(private, **call.knobs, randomness=randomness)


# -- events -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """Something to ask of outputs: a small whole number for each."""

    name: str
    answers: Callable[[Outputs], Whole]
    in_order: bool = False
    """Whether events are thresholds; otherwise any set of answers."""


def questions(pilot: Sequence[Outputs], values: Floats) -> list[Question]:
    """values: (columns,) of the dataset without the unit, in the places of its grid."""
    thresholds = np.unique(np.quantile(np.concatenate([p.projection for p in pilot]), np.linspace(0.0, 1.0, 2_001)))
    asked = [
        Question("projection", lambda o: np.searchsorted(thresholds, o.projection).astype(np.int64), in_order=True),
        Question("sum, odd or even", lambda o: o.places.sum(axis=1) & 1),
    ]
    for column, value in enumerate(values):
        centre = int(value)

        def exact(o: Outputs, column: int = column, centre: int = centre) -> Whole:
            return np.clip(o.places[:, column] - centre, -(2**15), 2**15)

        asked.append(Question(f"number {column}: its value", exact))
        asked += [
            Question(f"number {column}: modulo {divisor}", lambda o, c=column, d=divisor: o.places[:, c] % d)  # type: ignore[misc]
            for divisor in (2, 3, 16, 256)
        ]
        if pilot[0].remainders.any():
            asked.append(Question(f"number {column}: last bits", lambda o, c=column: o.remainders[:, c]))  # type: ignore[misc]
    return asked


@dataclass(frozen=True)
class Event:
    """An event: the answer to a question is one of these."""

    question: Question
    answers: Whole

    def counts(self, outputs: Outputs) -> int:
        return int(np.isin(self.question.answers(outputs), self.answers).sum())


Goodness = Callable[[Floats, Floats], Floats]


def best_events(
    pilots: Sequence[Sequence[Outputs]], asked: Sequence[Question], goodness: Sequence[Goodness]
) -> list[Event]:
    """For each measure of goodness, which looks at two error rates, the best event of all questions.

    Two pilots, each of both datasets: answers are put in order on one, and how many of them are best is seen on the other.
    """
    found: list[tuple[float, Event] | None] = [None] * len(goodness)
    trials = [len(pilot[0].projection) for pilot in pilots]
    for question in asked:
        answers = [question.answers(outputs) for pilot in pilots for outputs in pilot]
        every, places = np.unique(np.concatenate(answers), return_inverse=True)
        ends = np.cumsum([len(own) for own in answers])[:-1]
        counts = [np.bincount(own, minlength=len(every)) for own in np.split(places, ends)]
        order = np.argsort(-(counts[1] + 0.5) / (counts[0] + 0.5), kind="stable")
        if question.in_order:
            order = np.arange(len(every))[::-1]
        false_positives, true_positives = np.cumsum(counts[2][order]), np.cumsum(counts[3][order])
        alpha, beta = upper_limits(false_positives, trials[1]), upper_limits(trials[1] - true_positives, trials[1])
        for place, good in enumerate(goodness):
            reached = good(alpha, beta)
            best = int(np.argmax(reached))
            kept = found[place]
            if kept is None or reached[best] > kept[0]:
                found[place] = (float(reached[best]), Event(question, every[order[: best + 1]]))
    return [kept[1] for kept in found if kept is not None]


def _signals(alpha: Floats, beta: Floats) -> Floats:
    """`gaussian_signal` of many."""
    signals: Floats = stats.norm.isf(alpha) + stats.norm.isf(beta)
    return signals


def _direct(alpha: Floats, beta: Floats) -> Floats:
    """`direct_epsilon` of many, but for its zero."""
    ratios = np.maximum((1.0 - beta - DELTA) / alpha, (1.0 - alpha - DELTA) / beta)
    return np.log(np.maximum(ratios, 1e-300))


def upper_limits(successes: Whole, trials: int) -> Floats:
    """Clopper and Pearson's for many counts, as careful as the bounds will be: events far out, whose rates are least sure, are chosen last."""
    with np.errstate(invalid="ignore"):
        limits: Floats = stats.beta.isf(MOST_FAILURES / 2.0, successes + 1, trials - successes)
    return np.where(successes >= trials, 1.0, limits)


# -- verdicts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutputFinding:
    """What outputs alone have shown about one kind of release."""

    kind: str
    epsilon: float
    rows_per_unit: int
    epsilon_claimed: float
    epsilon_lower: float
    event: str
    epsilon_direct: float
    direct_event: str
    impossible_share: float
    """At least so many outputs of one dataset cannot be the other's."""
    trials: int

    @property
    def proven(self) -> float:
        """Whatever holds of a dataset's outputs in more than δ of all cases, and never of its neighbour's, has no ε."""
        return math.inf if self.impossible_share > DELTA else max(self.epsilon_lower, self.epsilon_direct)

    @property
    def ratio(self) -> float:
        if self.proven == 0.0:
            return 0.0
        return self.proven / self.epsilon_claimed if self.epsilon_claimed > 0.0 else math.inf


def finite(value: float) -> float | None:
    """The number for JSON; None for infinity, where no ε is enough."""
    return value if math.isfinite(value) else None


def summarised(document: dict[str, Any]) -> dict[str, Any]:
    """The result of an audit with these attacks among the others, as certificates count them; but for those against a claim of 0, which has no parts."""
    mine = [
        {
            "name": f"outputs alone: {finding['kind']}, ε = {finding['epsilon']:g}, {finding['rows_per_unit']:,} row{'s' if finding['rows_per_unit'] > 1 else ''} a unit",
            "epsilon_claimed": finding["epsilon_claimed"],
            "epsilon_lower": finding["proven"],
        }
        for finding in document["outputs"]
        if finding["epsilon_claimed"] > 0.0
    ]
    return {**document, "ours": [*document["ours"], *mine]}


def judge(
    kind: str, epsilon: float, rows_per_unit: int, neighbours: Neighbours, *, trials: int, seed: int
) -> OutputFinding:
    """Events are chosen on the first quarter of the outputs, and counted on the rest."""
    seen = Seen.of(neighbours)
    randomness = Repeated.from_test_seed(seed)
    both = [
        drawn_outputs(neighbours, seen, with_unit=unit, trials=trials, randomness=randomness) for unit in (False, True)
    ]
    half, cut = trials // 8, trials // 4
    first, second, rest = ([_part(o, part) for o in both] for part in (slice(half), slice(half, cut), slice(cut, None)))
    values = np.rint(neighbours.noise_free()[0] / seen.spacings)[seen.columns]
    signal, far = best_events((first, second), questions(first, values), (_signals, _direct))
    errors, errors_far = (_errors(event, rest) for event in (signal, far))
    return OutputFinding(
        kind,
        epsilon,
        rows_per_unit,
        claimed(neighbours.events),
        refuted_epsilon(errors, neighbours.events),
        signal.question.name,
        direct_epsilon(errors_far, DELTA),
        far.question.name,
        max(_impossible(neighbours, seen, rest, with_unit=unit) for unit in (False, True)),
        2 * (trials - cut),
    )


def _part(outputs: Outputs, which: slice) -> Outputs:
    return Outputs(outputs.projection[which], outputs.places[which], outputs.remainders[which])


def _errors(event: Event, outputs: Sequence[Outputs]) -> Errors:
    trials = len(outputs[0].projection)
    false_positives, true_positives = (event.counts(o) for o in outputs)
    return Errors(
        clopper_pearson_upper(false_positives, trials, failure=MOST_FAILURES / 2.0),
        clopper_pearson_upper(trials - true_positives, trials, failure=MOST_FAILURES / 2.0),
    )


def claimed(events: Events) -> float:
    noise_multiplier = _noise_multiplier(events)
    if events[0].sampling_probability == 1.0:
        return float(get_epsilon_gaussian(noise_multiplier, DELTA))
    return epsilon_of(events, delta=DELTA)


def _noise_multiplier(events: Events) -> float:
    """Of the one Gaussian, sampled or not, that the list is."""
    return sum(event.count * event.joint_noise_multiplier**-2 for event in events) ** -0.5


def refuted_epsilon(errors: Errors, events: Events) -> float:
    """Largest ε, at δ, of one Gaussian with this sampling whose trade-off curve these errors lie below.

    The curve of a Gaussian is known: f(α) = Φ(Φ⁻¹(1 - α) - μ), and (1 - q)·(1 - α) + q·f(α) of one that is sampled.
    """
    alpha, beta = errors.false_positive, errors.false_negative
    q = events[0].sampling_probability
    if max(alpha, beta) >= 1.0:
        return 0.0
    missed = (beta - (1.0 - q) * (1.0 - alpha)) / q
    if missed >= 1.0 - alpha:
        return 0.0
    # Below what a perfect view of every draw allows no such list is possible; this is as far as the search goes.
    signal = gaussian_signal(Errors(alpha, max(missed, 1e-12)))
    if signal <= 0.0:
        return 0.0
    if q == 1.0:
        return float(get_epsilon_gaussian(1.0 / signal, DELTA))
    return epsilon_of((SampledStepEvent(q, 1.0 / signal, None, 1),), delta=DELTA)


def _impossible(neighbours: Neighbours, seen: Seen, rest: Sequence[Outputs], *, with_unit: bool) -> float:
    """Lower limit for how often one dataset's outputs lie where the other's never do, knowing the code: from extreme random words.

    Looks at the number that a unit moves most. 0 where the other dataset can reach as far.
    """
    own = rest[1 if with_unit else 0].places[:, 0]
    low, high = (
        _farthest(neighbours, seen, int(seen.columns[0]), own, with_unit=not with_unit, on_the_left=left)
        for left in (True, False)
    )
    beyond = int(((own < low) | (own > high)).sum())
    return 1.0 - clopper_pearson_upper(len(own) - beyond, len(own), failure=MOST_FAILURES)


def _farthest(
    neighbours: Neighbours, seen: Seen, column: int, needed: Whole, *, with_unit: bool, on_the_left: bool
) -> int:
    """The place of an output that this dataset can have, as far on one side as any of those that are needed or as it can be."""
    before = 0
    for call in neighbours.with_unit if with_unit else neighbours.without:
        for index, value in enumerate(call.private.values):
            if column < before + value.numel():
                number = value.flatten()[column - before : column - before + 1]
                return _steered(call, index, number, float(seen.spacings[column]), needed, on_the_left=on_the_left)
            before += value.numel()
    raise IndexError(column)


def _steered(call: Call, index: int, number: Tensor, spacing: float, needed: Whole, *, on_the_left: bool) -> int:
    group = next(place for place, group in enumerate(call.private.groups) if index in group)
    alone = PrivateSum((number,), ((0,),), (call.private.sensitivities[group],))
    knobs = dict(call.knobs)
    if "noise_stds" in knobs:
        knobs["noise_stds"] = [call.noise_stds[index]]
    randomness = Steered.from_test_seed(1)
    randomness.on_the_left = on_the_left
    centre = number.item() / spacing
    randomness.distance = abs((float(needed.min()) if on_the_left else float(needed.max())) - centre) + 2.0
    (released,) = call.function(alone, **knobs, randomness=randomness)
    return round(released.item() / spacing)


# -- all attacks ------------------------------------------------------------------------------------------------------

OF_TABLES: dict[str, Callable[[float, int], Neighbours]] = {
    "label counts": labels,
    "one- and two-way tables": tables,
    "tables and shared values": tables_and_values,
    "single columns, looked at twice": first_looks,
    "scores of pairs": scores,
    "IDPGAN step: gradient and histogram": step,
    "the same, Poisson-sampled, q = 0.25": lambda epsilon, rows: step(epsilon, rows, 0.25),
    "RDP-CGAN step: gradient of the autoencoder": autoencoder_step,
    "PATE-GAN step: votes of teachers": votes,
    "DPGM: means and counts of clusters": clusters,
    "DP-SYN: moments of codes": latent_moments,
    "IDPGAN: bought relevance of inputs": bought_relevance,
}


def attempts(trials: int) -> Iterator[Callable[[], OutputFinding]]:
    """Every kind of release, at every ε, with units of one row and of many; images are units of one record."""
    seed = 100
    for kind, neighbours in OF_TABLES.items():
        for epsilon in EPSILONS:
            for rows in ROWS_PER_UNIT:
                seed += 1
                yield _attempt(kind, epsilon, rows, neighbours, trials, seed)
    for kind, (purpose, measure) in IMAGE_RELEASES.items():
        for epsilon in EPSILONS:
            seed += 1
            yield _attempt(
                kind,
                epsilon,
                1,
                lambda e, _, p=purpose, m=measure: of_images(p, m, e),
                trials,
                seed,  # type: ignore[misc]
            )
    for epsilon in EPSILONS:
        seed += 1
        yield _attempt("images: one by one", epsilon, 1, single_images, trials, seed)
    for epsilon in (50.0, 250.0):
        for rows in ROWS_PER_UNIT:
            seed += 1
            yield _attempt("label counts", epsilon, rows, labels, trials, seed)
    yield _attempt("label counts, noise 2^48", 0.0, 1, lambda _, rows: labels_under_large_noise(rows), trials, seed + 1)


def attempts_on_rounded_normals(trials: int) -> Iterator[Callable[[], OutputFinding]]:
    """The same attacks on the noise that was used before discrete noise, which they must detect."""
    for place, (epsilon, rows) in enumerate(((50.0, 1_000), (250.0, 1), (250.0, 1_000))):
        yield _attempt("rounded normals", epsilon, rows, _rounded(labels), trials, 300 + place)
    large = _rounded(lambda _, rows: labels_under_large_noise(rows))
    yield _attempt("rounded normals, noise 2^48", 0.0, 1, large, trials, 310)


def _rounded(neighbours: Callable[[float, int], Neighbours]) -> Callable[[float, int], Neighbours]:
    def build(epsilon: float, rows: int) -> Neighbours:
        real = neighbours(epsilon, rows)
        changed = [[replace(c, function=rounded_normals) for c in calls] for calls in (real.without, real.with_unit)]
        return Neighbours(changed[0], changed[1], real.events)

    return build


def _attempt(
    kind: str, epsilon: float, rows: int, neighbours: Callable[[float, int], Neighbours], trials: int, seed: int
) -> Callable[[], OutputFinding]:
    times = MORE_TRIALS if epsilon < MORE_TRIALS_BELOW else 1
    return lambda: judge(kind, epsilon, rows, neighbours(epsilon, rows), trials=times * trials, seed=seed)
