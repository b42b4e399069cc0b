"""Chance in tests: what torch draws without a seed of its own is the same in every run."""

import torch


def test_torch_draws_from_one_seed_in_every_test() -> None:
    """Whatever ran before in this process; `tests/conftest.py` sees to it."""
    assert torch.initial_seed() == 0
    first = torch.randn(8)
    assert torch.equal(first, torch.randn(8, generator=torch.Generator().manual_seed(0)))
