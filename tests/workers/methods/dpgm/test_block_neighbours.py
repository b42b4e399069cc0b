"""Whole runs of `dpgm` and `dpsyn` on neighbouring data: what one unit moves, in exact fractions, and that nothing public moves otherwise.

The second run is given the outputs of the first, and the same coins. All that is public is then a function of these outputs, so that it must
be equal to the last bit; and every sum may differ by the changed unit's own part alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from service.domain.image_schema import parse_schema
from service.methods.catalogue import CATALOGUE, parse_order
from service.privacy.events import GaussianEvent, SampledStepEvent
from tests.catalogue import TABLE_SCHEMA
from tests.exact_changes import squared_change
from workers.encoding.images import EncodedImages
from workers.encoding.table import ABSENT, EncodedTable, TableDomain
from workers.hooks import Hooks
from workers.mechanism.secure_random import SecureRandom
from workers.methods import whole_sums
from workers.methods.dpgm import training
from workers.methods.interface import run_class
from workers.plan import Plan
from workers.sources import GivenImages, GivenTable

if TYPE_CHECKING:
    from torch import Tensor

    from workers.mechanism import PrivateSum

UNITS = 90
CHANGED = 4
KNOBS: dict[str, dict[str, Any]] = {
    "dpgm": {"clusters": 3, "cluster_rounds": 3, "features": 6},
    "dpsyn": {"gaussians": 3, "em_rounds": 4},
}

pytestmark = pytest.mark.usefixtures("one_thread")


class Ear:
    """Every sum that is released and what came out; given another's outputs, those come out instead."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, outputs: list[tuple[Tensor, ...]] | None = None) -> None:
        self.sums: list[PrivateSum] = []
        self.outputs: list[tuple[Tensor, ...]] = []
        noise = SecureRandom.from_test_seed(77)  # apart from the coins of the run, so that these are the same in both
        for module, name in ((training, "release"), (whole_sums, "release_counts")):
            monkeypatch.setattr(module, name, self.heard(getattr(module, name), noise, outputs))

    def heard(self, real: Any, noise: SecureRandom, outputs: list[tuple[Tensor, ...]] | None) -> Any:
        def release(private: PrivateSum, *, randomness: SecureRandom, **knobs: Any) -> tuple[Tensor, ...]:
            del randomness
            made = real(private, randomness=noise, **knobs) if outputs is None else outputs[len(self.sums)]
            self.sums.append(private)
            self.outputs.append(made)
            return tuple(made)

        return release


def codes_of(domain: TableDomain, rows: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.stack([rng.integers(0, width, rows) for width in domain.widths], axis=1).astype(np.uint16)


def neighbours(holds: str) -> tuple[Any, Any]:
    """Sources of data and of the same without one unit."""
    rng = np.random.default_rng(0)
    if holds == "images":
        pixels = rng.integers(0, 256, (UNITS, 64)).astype(np.uint8)
        labels = np.arange(UNITS) % 3
        images = EncodedImages(pixels, labels, (8, 8, 1), 3)
        gone, others = pixels.copy(), labels.copy()
        gone[CHANGED], others[CHANGED] = 0, -1
        return GivenImages(images), GivenImages(replace(images, pixels=gone, labels=others))
    domain = TableDomain.from_schema(parse_schema(TABLE_SCHEMA), numeric_bins=4)  # type: ignore[arg-type]
    if holds == "rows":
        table = EncodedTable(codes_of(domain, UNITS), UNITS, None, 1, {})
        codes = table.codes.copy()
        codes[CHANGED] = ABSENT
        return GivenTable(table, domain), GivenTable(replace(table, codes=codes), domain)
    # Units of one to three rows, which may be of several labels and clusters; one unit loses all of its rows.
    sizes = rng.integers(1, 4, UNITS)
    sizes[CHANGED] = 3
    starts = np.append(0, np.cumsum(sizes)).astype(np.int64)
    codes = codes_of(domain, int(starts[-1]))
    kept = np.ones(len(codes), dtype=np.bool_)
    kept[starts[CHANGED] : starts[CHANGED + 1]] = False
    fewer = starts.copy()
    fewer[CHANGED + 1 :] -= 3
    full = EncodedTable(codes, UNITS, starts, 3, {})
    return GivenTable(full, domain), GivenTable(EncodedTable(codes[kept], UNITS, fewer, 3, {}), domain)


def order_of(method: str, holds: str) -> Any:
    sizes = {"hidden_units": 5, "latent_numbers": 2, "numeric_bins": 4}
    order = parse_order({"method": method, "epsilon": 2.0, "steps": 3, "autoencoder": sizes, **KNOBS[method]})
    condition = "label" if holds == "images" else "colour"
    return order.model_copy(update={"condition_on": condition, "sampling_probability": 0.6})


def events_of(order: Any) -> tuple[Any, ...]:
    """Noise that does not drown what differs."""
    listed = CATALOGUE[order.method].events(order, 1.0, 1e-7)(0.5)
    assert {type(event) for event in listed} == {GaussianEvent, SampledStepEvent}
    return tuple(
        replace(event, noise_multiplier=0.7) if isinstance(event, GaussianEvent) else event for event in listed
    )


def run_of(method: str, holds: str, source: Any) -> Any:
    order = order_of(method, holds)
    run = run_class(order)(order, Plan(events_of(order)), source, SecureRandom.from_test_seed(5), torch.device("cpu"))
    run.measure()
    return run, run.finish(Hooks())


@pytest.mark.parametrize("holds", ["rows", "units", "images"])
@pytest.mark.parametrize("method", ["dpgm", "dpsyn"])
def test_one_unit_moves_every_sum_by_at_most_its_sensitivity_and_nothing_public(
    method: str, holds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, without = neighbours(holds)
    with monkeypatch.context() as patched:
        first = Ear(patched)
        run, made = run_of(method, holds, full)
    with monkeypatch.context() as patched:
        second = Ear(patched, first.outputs)
        other, again = run_of(method, holds, without)

    assert run.plan.position == other.plan.position == len(first.sums) == len(second.sums)
    largest = 0.0
    for one, two in zip(first.sums, second.sums, strict=True):
        for change, sensitivity in zip(squared_change(one, two), one.sensitivities, strict=True):
            assert change <= Fraction(sensitivity) ** 2
            largest = max(largest, math.sqrt(change) / sensitivity)
    assert largest > 0.9  # declared is not far from what happens

    assert run.normalisers().tolist() == other.normalisers().tolist()
    saved, kept = run.checkpoint(), other.checkpoint()
    assert saved.values == kept.values
    for name, tensor in saved.tensors.items():
        assert torch.equal(tensor, kept.tensors[name]), name
    for name, tensor in made.generator.state_dict().items():
        assert torch.equal(tensor, again.generator.state_dict()[name]), name


@pytest.mark.parametrize("method", ["dpgm", "dpsyn"])
def test_a_crash_after_any_step_leaves_a_checkpoint_to_go_on_from(method: str) -> None:
    source, order = neighbours("rows")[0], order_of(method, "rows")
    plan = events_of(order)
    run = run_class(order)(order, Plan(plan), source, SecureRandom(), torch.device("cpu"))
    run.measure()
    run.step()
    saved = run.checkpoint().to_bytes()
    later = run_class(order)(order, Plan(plan), source, SecureRandom(), torch.device("cpu"))
    later.restore(training.Checkpoint.from_bytes(saved))
    assert later.plan.steps_done == 1
    assert later.members().tolist() == run.members().tolist()
    assert later.normalisers().tolist() == run.normalisers().tolist()
    assert torch.equal(later.tensors[0], run.tensors[0])
    later.finish(Hooks())
    assert later.plan.position == sum(event.count for event in plan)
