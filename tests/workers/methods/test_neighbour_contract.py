"""What holds for every method of the catalogue that makes a generator, as it runs on data and on the same without one unit.

The second run is given the outputs of the first, and the same coins. All that is public is then a function of these outputs and must be equal
to the last bit; every sum differs by its sensitivity at most. What a method is made of is tested more closely beside it.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from service.methods.catalogue import CATALOGUE
from tests.catalogue import CASES, Case, case_of
from tests.exact_changes import squared_change
from tests.neighbouring_tables import with_rows_removed, zeroed_out
from workers.hooks import Hooks
from workers.mechanism import PrivateSum, noise
from workers.mechanism.image_moments import NO_CELL
from workers.mechanism.secure_random import SecureRandom
from workers.methods.interface import run_class
from workers.plan import Plan
from workers.sources import GivenImages, GivenTable

CHANGED = 7
KNOBS: dict[str, dict[str, Any]] = {
    "dpgm": {"cluster_rounds": 2, "clusters": 3, "features": 8},
    "dpsyn": {"em_rounds": 3},
    "pategan": {"teachers": 5, "votes_per_step": 16},
    "gswgan": {"discriminators": 5, "start_steps": 2},
}
ELSEWHERE = {
    "choose": "runs of other methods, on parts",
    "declaration": "no Gaussian noise: tests/workers/methods/declaration",
    "queries": "answers, of several mechanisms: tests/workers/methods/queries",
    "image_release": "one unit, of which each number is: tests/privacy/test_contracts_single_images.py",
}
HERE = [(method, holds) for method, holds in CASES if method not in ELSEWHERE]
CLOSER = {"idpgan", "marginals", "mixture", "dpgm", "dpsyn", "rdpcgan", "pategan", "gswgan"}
"""Those that have tests over neighbours of their own, which are quick."""
VMAPPED = {"dpacgan"}
"""Its gradients take their time."""

pytestmark = pytest.mark.usefixtures("one_thread")


class Ear:
    """Every sum that is released by a method's run and what came out; given another's outputs, those come out instead."""

    def __init__(self, patched: pytest.MonkeyPatch, outputs: list[tuple[torch.Tensor, ...]] | None = None) -> None:
        self.sums: list[PrivateSum] = []
        self.outputs: list[tuple[torch.Tensor, ...]] = []
        self.given = outputs
        self.noise = SecureRandom.from_test_seed(
            77
        )  # apart from the coins of the run, so that these are the same in both
        for function in (noise.release, noise.release_counts):
            name = function.__name__
            for module in [module for at, module in sys.modules.items() if at.startswith("workers.methods")]:
                if getattr(module, name, None) is function:
                    patched.setattr(module, name, self.heard(function))

    def heard(self, real: Any) -> Any:
        def release(private: PrivateSum, *, randomness: SecureRandom, **knobs: Any) -> tuple[torch.Tensor, ...]:
            del randomness
            made = real(private, randomness=self.noise, **knobs) if self.given is None else self.given[len(self.sums)]
            self.sums.append(private)
            self.outputs.append(made)
            return tuple(value.clone() for value in made)

        return release


class Given:
    """The case's source with so many records for each unit; or the same without one unit, whose records are null or are gone."""

    def __init__(self, case: Case, *, each: int, without: bool) -> None:
        self.source, self.each, self.without = case.source(), each, without
        self.holds_images = self.source.holds_images

    def table(self, **how: Any) -> Any:
        table, domain = self.source.table(**how)
        if self.each > 1:
            table = replace(table, units=len(table.codes) // self.each, unit_starts=self.starts(len(table.codes)))
            table = replace(table, max_rows_per_unit=self.each)
        if self.without:
            table = with_rows_removed(table, CHANGED) if self.each > 1 else zeroed_out(table, CHANGED)
        return GivenTable(table, domain).table(**how)

    def images(self) -> Any:
        images = self.source.images()
        if self.each > 1:
            images = replace(images, unit_starts=self.starts(len(images.labels)), max_images_per_unit=self.each)
        if self.without:
            pixels, labels = images.pixels.copy(), images.labels.copy()
            own = slice(CHANGED * self.each, (CHANGED + 1) * self.each)
            pixels[own], labels[own] = 0, NO_CELL
            images = replace(images, pixels=pixels, labels=labels)
        return GivenImages(images).images()

    def starts(self, records: int) -> Any:
        return np.arange(0, records + 1, self.each, dtype=np.int64)

    def values(self, names: Any) -> Any:
        raise TypeError(f"no generator reads {names} as they are")


def whole_run(case: Case, source: Any) -> tuple[Any, Any]:
    run: Any = run_class(case.order)(
        case.order, Plan(case.events), source, SecureRandom.from_test_seed(5), torch.device("cpu")
    )
    run.measure()
    return run, run.finish(Hooks())


@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize(
    ("method", "holds"),
    [pytest.param(*case, marks=pytest.mark.slow if case[0] in CLOSER | VMAPPED else ()) for case in HERE],
)
def test_one_unit_moves_every_sum_by_at_most_its_sensitivity_and_nothing_public(
    method: str, holds: Any, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    knobs = dict(KNOBS.get(method, {}))
    if "sampling_probability" in CATALOGUE[method].order.model_fields:
        knobs["sampling_probability"] = 0.7
    case = case_of(method, holds, **knobs)
    run_class(case.order)  # its modules are loaded before they are listened to
    with monkeypatch.context() as patched:
        first = Ear(patched)
        run, made = whole_run(case, Given(case, each=each, without=False))
    with monkeypatch.context() as patched:
        second = Ear(patched, first.outputs)
        other, again = whole_run(case, Given(case, each=each, without=True))

    assert run.plan.position == other.plan.position == sum(event.count for event in case.events)
    assert len(first.sums) == len(second.sums) >= 2
    moved = Fraction(0)
    for full, without in zip(first.sums, second.sums, strict=True):
        for change, sensitivity in zip(squared_change(full, without), full.sensitivities, strict=True):
            assert change <= Fraction(sensitivity) ** 2
            moved = max(moved, change / Fraction(sensitivity) ** 2)
    assert moved > (0.5 if each == 1 else 0.2)  # the unit was read at all; two records may point apart

    ours, theirs = run.checkpoint(), other.checkpoint()
    assert ours.values == theirs.values
    for one, two in ((ours.tensors, theirs.tensors), (made.generator.state_dict(), again.generator.state_dict())):
        assert one.keys() == two.keys()
        for name, tensor in one.items():
            assert torch.equal(tensor, two[name]), name
    for name, value in vars(made).items():
        if isinstance(value, int | float | str | tuple):
            assert np.array_equal(np.asarray(value, dtype=object), np.asarray(vars(again)[name], dtype=object)), name


def test_every_method_is_here_or_elsewhere() -> None:
    assert {method for method, _ in HERE} | set(ELSEWHERE) == set(CATALOGUE)
