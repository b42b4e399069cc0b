"""The fit's steps, written by hand for speed, against autograd and Adam as torch has them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from workers.methods.marginals.fit import mixture_fit
from workers.methods.marginals.fit.mixture_fit import MixtureFit, NoisyTables, _with_square

WIDTHS, COMPONENTS, RATE, STEPS, TOGETHER = (3, 4, 2, 60, 70), 8, 0.1, 8, 4
"""Wide enough that tables are products of several blocks."""


def make_tables(groups: tuple[Tensor, ...], *, slices: int, pair_slices: int) -> NoisyTables:
    random = torch.Generator().manual_seed(5)
    sizes = torch.tensor([int(group.max()) + 1 for group in groups])
    column = torch.arange(len(sizes)).repeat_interleave(sizes)
    between = column[:, None] != column[None, :]
    two_way, precision = (torch.rand(n, len(column), len(column), generator=random) for n in (pair_slices, 1))
    return NoisyTables(
        one_way=50.0 * torch.rand(slices, sum(WIDTHS), generator=random),
        one_way_precision=torch.rand(sum(WIDTHS), generator=random),
        two_way=20.0 * (two_way + two_way.mT) * between,
        two_way_precision=(precision + precision.mT)[0] * between,
        totals=torch.full((slices,), 100.0),
        widths=WIDTHS,
        groups=groups,
    )


def distance(logits: Tensor, tables: NoisyTables) -> Tensor:
    """Half of the squared errors of all cells, each pair of cells once, by precision."""
    sizes = [int(group.max()) + 1 for group in tables.groups]
    made = torch.zeros_like(tables.two_way)
    total = logits.new_zeros(())
    for place, own in enumerate(logits):
        shares = torch.cat([part.softmax(dim=1) for part in own.split(list(WIDTHS), dim=1)], dim=1)
        grouped = torch.cat(
            [
                part.new_zeros(COMPONENTS, size).index_add(1, group, part)
                for part, group, size in zip(shares.split(list(WIDTHS), dim=1), tables.groups, sizes, strict=True)
            ],
            dim=1,
        )
        rows = float(tables.totals[place]) / COMPONENTS
        pairs = rows * grouped.T @ grouped
        made = made + pairs * (torch.arange(len(made)) == place % len(made)).view(-1, 1, 1)
        total = total + (tables.one_way_precision * (rows * shares.sum(dim=0) - tables.one_way[place]) ** 2).sum() / 2
    return total + (tables.two_way_precision * (made - tables.two_way) ** 2).sum() / 4


@pytest.mark.parametrize("are_grouped", [False, True])
@pytest.mark.parametrize(("slices", "pair_slices"), [(1, 1), (2, 2), (2, 1)])
def test_its_steps_are_those_of_adam(
    are_grouped: bool, slices: int, pair_slices: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strata with pairs of their own begin with the same logits, but for what each adds to a cell's in all components."""
    monkeypatch.setattr(mixture_fit, "STEPS_TOGETHER", TOGETHER)
    groups = tuple(torch.arange(width) // (2 if are_grouped and width > 2 else 1) for width in WIDTHS)
    tables = make_tables(groups, slices=slices, pair_slices=pair_slices)
    fit = MixtureFit(
        tables,
        components=COMPONENTS,
        steps=STEPS,
        learning_rate=RATE,
        randomness=torch.Generator().manual_seed(1),
        device=torch.device("cpu"),
    )
    logits, done = fit.logits().clone(), 0
    if pair_slices == 2:
        shared, added = logits[:1].clone(), (logits - logits[:1])[:, :1].clone()
        torch.testing.assert_close(shared + added, logits)
        follow(tables, shared, added, steps=range(TOGETHER))
        logits, done = shared + added, TOGETHER
        fit.run(lambda _step: None, until=TOGETHER)
        torch.testing.assert_close(fit.logits(), logits, rtol=0.0, atol=5e-3)
    follow(tables, logits, steps=range(done, STEPS))
    fit.run(lambda _step: None)
    torch.testing.assert_close(fit.logits(), logits, rtol=0.0, atol=5e-3)


def follow(tables: NoisyTables, *parts: Tensor, steps: range) -> None:
    """Adam's steps on the squared error of logits that are the sum of these parts, which are changed in place."""
    leaves = [part.requires_grad_() for part in parts]
    adam = torch.optim.Adam(leaves, lr=RATE, betas=(0.9, 0.999), eps=1e-12)
    for step in steps:
        adam.param_groups[0]["lr"] = RATE * (1.0 - step / STEPS)
        adam.zero_grad()
        distance(sum(leaves[1:], leaves[0]), tables).backward()  # type: ignore[no-untyped-call]
        adam.step()
    for leaf in leaves:
        leaf.requires_grad_(False)


@pytest.mark.parametrize("cells", [1, 95, 96, 97, 193])
def test_a_square_in_blocks_is_a_square(cells: int) -> None:
    random = torch.Generator().manual_seed(2)
    rows, added = torch.rand(cells, 16, generator=random), torch.rand(cells, cells, generator=random)
    added = added + added.T
    made = _with_square(added, rows, beta=-1.0, alpha=0.5)
    torch.testing.assert_close(made, 0.5 * rows @ rows.T - added, rtol=1e-5, atol=1e-5)
