"""The private classifier of the bench: its gradients, what a record can move, and that more noise is less ε."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from bench.fsdp.__main__ import table_4
from bench.fsdp.classifier import (
    Classifier,
    Setting,
    Ticket,
    cross_entropy_gradients,
    events_of,
    noise_multiplier,
    trained,
)
from bench.fsdp.rest import of_cells, page, rows_of_the_table
from bench.pages import RESULTS
from service.methods.idpgan.knobs import OneGroup
from service.methods.idpgan.private_step import PrivateStep
from service.privacy.accounting import epsilon_of
from service.privacy.events import SampledStepEvent
from service.privacy.schedules import PolynomialDecay
from workers.engines.held import HELD_ROUNDING, HeldGradients
from workers.mechanism import DrawBounds
from workers.mechanism.clipping import clip_and_sum
from workers.methods.idpgan.step_knobs.step import ShapedStep
from workers.numerics.workspace import Workspace


def records_of(count: int = 40) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    labels = torch.arange(count) % 10
    return F.one_hot(labels, 12).float() + 0.1 * torch.randn(count, 12, generator=generator), labels


def test_gradients_are_those_of_cross_entropy() -> None:
    torch.manual_seed(0)
    classifier, (records, labels) = Classifier(12, 5), records_of()
    found = cross_entropy_gradients(classifier, records, labels)
    for unit in (0, 7):
        loss = F.cross_entropy(classifier.logits(records[unit : unit + 1]), labels[unit : unit + 1])
        for mine, expected in zip(found, torch.autograd.grad(loss, list(classifier.parameters())), strict=True):
            assert torch.allclose(mine[unit], expected, atol=1e-5)


@pytest.mark.parametrize("knobs", [{}, {"subspace": {"rank": 4}}])
def test_a_record_moves_each_part_by_its_clip_norm_at_most(knobs: dict[str, object]) -> None:
    torch.manual_seed(0)
    classifier, (records, labels) = Classifier(12, 5), records_of()
    step = ShapedStep(PrivateStep.model_validate(knobs), list(classifier.parameters()))
    groups = step.groups((0.05,) * len(step.shapes), OneGroup())
    assert len(groups.groups) == (2 if knobs else 1)  # E and Φ apart

    def summed(there: torch.Tensor) -> list[torch.Tensor]:
        gradients = HeldGradients(cross_entropy_gradients(classifier, records, labels), there, Workspace())
        clipped = clip_and_sum(
            [step.seen(gradients, groups)],
            groups=groups.groups,
            clip_norms=groups.clip_norms,
            shapes=step.shapes,
            bounds=DrawBounds(40, 64, 1, block_rounding=HELD_ROUNDING),
        )
        return [torch.cat([clipped.sum.values[t].flatten() for t in group]) for group in groups.groups]

    everybody = torch.ones(40, dtype=torch.bool)
    full = summed(everybody)
    for unit in range(0, 40, 7):
        gone = summed(everybody & (torch.arange(40) != unit))
        for one, other, norm in zip(full, gone, groups.clip_norms, strict=True):
            assert 0.5 * norm < float((one - other).norm()) <= norm


def test_steps_cost_the_epsilon_that_was_asked_for() -> None:
    setting = Setting(2.0, 50, 100)
    sigma = noise_multiplier(setting, 5_000)
    spent = epsilon_of((SampledStepEvent(100 / 5_000, sigma, None, 50),), delta=1e-5)
    assert 1.97 <= spent <= 2.0


def test_it_learns_where_there_is_little_noise() -> None:
    records, labels = records_of(400)
    setting = Setting(8.0, 40, 100, hidden=16, learning_rate=2e-2)
    made = trained(
        setting, {"subspace": {"rank": 6, "every_steps": 5}}, records, labels, public=records[:5], sigma=0.05, seed=1
    )
    assert float((made.logits(records).argmax(dim=1) == labels).float().mean()) > 0.9


def test_noise_that_falls_costs_the_epsilon_that_was_asked_for() -> None:
    setting = Setting(2.0, 60, 2_500, decay=PolynomialDecay(end_ratio=0.5))
    events = events_of(setting, 5_000, noise_multiplier(setting, 5_000))
    assert sum(event.private_steps for event in events) == 60
    assert len(events) > 5
    assert 1.97 <= epsilon_of(events, delta=1e-5) <= 2.0


def test_a_ticket_is_of_public_rows_and_what_it_leaves_out_is_zero() -> None:
    records, labels = records_of(200)
    ticket = Ticket(records[:100], labels[:100], 0.25, steps=5, batch=20)
    made = [
        trained(Setting(8.0, 2, 50, hidden=8), {}, rows, labels, public=records[:5], sigma=1.0, seed=1, ticket=ticket)
        for rows in (records, torch.zeros_like(records))
    ]
    kept = [torch.cat([tensor.flatten() for tensor in one.parameters()]) != 0 for one in made]
    assert 0.2 < float(kept[0].float().mean()) < 0.3
    assert torch.equal(*kept), "whatever the private rows are"


def test_cells_are_scaled_by_ranges_of_all_rows_and_the_table_says_that_no_epsilon_pays_for_them() -> None:
    rows = of_cells()
    assert rows.records.shape == (400, 30)
    assert rows.tests.shape == (169, 30)
    assert float(rows.records.min()) >= 0.0
    assert float(rows.records.max()) <= 1.0
    # Both ends of every column are reached: a range is that of some two rows.
    every = torch.cat([rows.records, rows.tests])
    assert float(every.min(dim=0).values.max()) < 0.03
    assert float(every.max(dim=0).values.min()) > 0.97
    table = rows_of_the_table(300)
    assert {row.rows for row in table} == {"Fashion-MNIST", "MNIST", "breast cancer"}
    kept = (RESULTS / "fsdp.md").read_text(encoding="utf-8")
    head, *_, first, second = page(300, [(row, [1.0]) for row in table]).splitlines()
    assert "not public" in head
    assert head.split("one thread")[1].split(". ", 1)[1] in kept
    for line in (first, second):
        assert "ε without the ranges" in line
        assert line.rsplit("|", 2)[1] in kept


def test_table_4_prices_two_parts_with_all_noise_each_higher_than_one() -> None:
    rows = [line.split("|") for line in table_4() if line.startswith(("| 4.4", "| 1.3"))]
    assert len(rows) == 4
    assert all(float(row[4]) < float(row[5]) for row in rows)
    assert math.sqrt(2.0 * math.log(1.25e5)) / 4.4 == pytest.approx(1.10, abs=0.005)
