"""The distance of a generator's tables from those held: unbiased, its gradient right, strata looked at by their shares."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import Tensor, nn

from workers.mechanism.marginals import TableLayout
from workers.methods.idpgan.held_tables import (
    FINE,
    MOST_STRATA_AT_ONCE,
    HeldTables,
    _ErrorsOfPairs,
    _without_label,
)
from workers.methods.idpgan.warm_start import fit_generator
from workers.networks.mixture import MixtureGenerator
from workers.networks.table import TableGenerator

ROWS = 1_024


def layout(label: int | None, pair_widths: tuple[int, ...] = (3, 6, 2)) -> TableLayout:
    return TableLayout(widths=(3, 6, 2), pair_widths=pair_widths, has_missing=(False,) * 3, label=label)


def held_of(slices: int, shares: tuple[float, ...] | None) -> tuple[HeldTables, MixtureGenerator]:
    """Tables of a mixture of two columns and a label of so many values."""
    wide = TableLayout(widths=(3, 4, slices), pair_widths=(3, 4, slices), has_missing=(False,) * 3, label=2)
    mixture = MixtureGenerator(2.0 * torch.randn(slices, 4, 7 + slices))
    return HeldTables.of_mixture(mixture, wide, shares), mixture


@torch.no_grad()
def distances(
    held: HeldTables, generator: nn.Module, noise_dimension: int, batches: int = 200, *, even: bool = False
) -> Tensor:
    """Of as many batches of public noise."""
    found = []
    for _ in range(batches):
        parts = (held.even_parts if even else held.parts)(ROWS, torch.rand(()).item())
        noise = torch.randn(sum(part.rows for part in parts), noise_dimension)
        logits = _without_label(generator(noise, held.conditions(parts)), held.layout)
        found.append(held.distance(logits, parts))
    return torch.stack(found)


@pytest.mark.parametrize("label", [None, 2])
@pytest.mark.parametrize("pair_widths", [(3, 6, 2), (3, 4, 2)])
@pytest.mark.parametrize("even", [False, True])
def test_the_distance_of_tables_is_unbiased(label: int | None, pair_widths: tuple[int, ...], even: bool) -> None:
    """Zero on average of the very mixture that the tables are of, and of another one what the tables say."""
    torch.manual_seed(0)
    slices = 1 if label is None else 2
    one, other = (MixtureGenerator(2.0 * torch.randn(slices, 8, 11)) for _ in range(2))
    shares = None if label is None else (0.25, 0.75)
    held, theirs = (HeldTables.of_mixture(mixture, layout(label, pair_widths), shares) for mixture in (one, other))
    own, far = (distances(held, mixture, one.noise_dimension, even=even) for mixture in (one, other))
    assert abs(float(own.mean())) < 4.0 * float(own.std()) / 200**0.5
    wanted = (
        sum(
            float(share)
            * float(
                ((a - b).square() * held._between_columns / (a + FINE)).sum() + ((c - d).square() / (c + FINE)).sum()
            )
            for share, a, b, c, d in zip(
                held.shares, held.two_way, theirs.two_way, held.one_way, theirs.one_way, strict=True
            )
        )
        / len(held.layout.free) ** 2
    )
    assert float(far.mean()) == pytest.approx(wanted, abs=4.0 * float(far.std()) / 200**0.5)


def test_the_gradient_by_hand_is_that_of_the_formula() -> None:
    torch.manual_seed(0)
    halves = [torch.rand(5, 4, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    pairs, weights = (square + square.T for square in torch.rand(2, 4, 4, dtype=torch.float64))

    def formula(first: Tensor, second: Tensor) -> Tensor:
        return (weights * (first.T @ first / 5 - pairs) * (second.T @ second / 5 - pairs)).sum()

    value, wanted = _ErrorsOfPairs.apply(*halves, pairs, weights), formula(*halves)
    torch.testing.assert_close(value, wanted)
    for one, other in zip(
        torch.autograd.grad(3.0 * value, halves), torch.autograd.grad(3.0 * wanted, halves), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_rows_are_shared_by_few_slices_as_the_tables_say() -> None:
    held, _ = held_of(2, (0.3, 0.7))
    for place in (0.001, 0.5, 0.999):
        parts = held.parts(100, place)
        assert [part.stratum for part in parts] == [0, 1]
        assert sum(part.rows for part in parts) == 100
        assert abs(parts[0].rows - 30) <= 1
        assert held.conditions(parts).tolist() == [0] * parts[0].rows + [1] * parts[1].rows


def test_of_many_slices_a_few_are_looked_at_by_their_shares() -> None:
    torch.manual_seed(0)
    shares = (0.4, *[0.1] * 6)
    held, mixture = held_of(7, shares)
    seen: Counter[int] = Counter()
    for place in torch.linspace(0.0005, 0.9995, 1_000).tolist():
        parts = held.parts(ROWS, place)
        assert len(parts) <= MOST_STRATA_AT_ONCE
        assert sum(part.rows for part in parts) == ROWS
        seen.update({part.stratum: part.rows for part in parts})
        assert [len(held.parts(rows, place)) for rows in (1, 255)] == [1, 1]
    assert [seen[which] / (1_000 * ROWS) for which in range(7)] == pytest.approx(shares, abs=0.002)
    own = distances(held, mixture, mixture.noise_dimension)
    assert abs(float(own.mean())) < 4.0 * float(own.std()) / 200**0.5
    _, other = held_of(7, shares)
    assert float(distances(held, other, other.noise_dimension).mean()) > 10.0 * float(own.std())


def test_a_slice_with_a_single_row_adds_nothing_and_breaks_nothing() -> None:
    held, mixture = held_of(2, (0.01, 0.99))
    parts = held.parts(60, 0.1)
    assert [part.rows for part in parts] == [1, 59]
    logits = mixture(torch.randn(60, mixture.noise_dimension), held.conditions(parts))
    logits = _without_label(logits, held.layout).requires_grad_()
    (gradient,) = torch.autograd.grad(held.distance(logits, parts), logits)
    assert bool(gradient.isfinite().all())
    assert float(gradient[0].abs().max()) == 0.0
    assert float(gradient[1].abs().max()) > 0.0


def test_fitting_brings_a_generator_near() -> None:
    torch.manual_seed(0)
    mixture = MixtureGenerator(2.0 * torch.randn(2, 8, 11))
    held = HeldTables.of_mixture(mixture, layout(2), (0.5, 0.5))
    generator = TableGenerator((3, 6, 2), noise_dimension=8, hidden=(32,), condition_index=2)
    before = float(distances(held, generator, 8, 20).mean())
    fit_generator(generator, held, noise_dimension=8, steps=150, learning_rate=1e-2, on_step=lambda: None)
    assert float(distances(held, generator, 8, 20).mean()) < 0.1 * before
