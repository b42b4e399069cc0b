"""Adam against torch's own class, from a checkpoint too, and what it does not load."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from workers.checkpoints import adam_tensors, restore_adam
from workers.numerics.adam import Adam

SHAPES = ((3, 4), (4,), ())
BETAS = (0.5, 0.9)


def make_tensors() -> list[torch.Tensor]:
    torch.manual_seed(1)
    return [torch.randn(shape).requires_grad_() for shape in SHAPES]


def give_gradients(tensors: list[torch.Tensor], seed: int) -> None:
    torch.manual_seed(seed)
    for tensor in tensors:
        tensor.grad = torch.randn(tensor.shape)


def test_it_moves_as_torch_does_whatever_happens_to_the_learning_rate_and_after_a_checkpoint() -> None:
    tensors, wanted = make_tensors(), make_tensors()
    ours, theirs = Adam(tensors, learning_rate=0.1, betas=BETAS), torch.optim.Adam(wanted, lr=0.1, betas=BETAS)
    for step in range(6):
        ours.learning_rate = theirs.param_groups[0]["lr"] = 0.1 / (1 + step)
        give_gradients(tensors, step)
        give_gradients(wanted, step)
        if step == 3:
            saved = {name: value.clone() for name, value in adam_tensors(ours, "adam").items()}
            ours = Adam(tensors, learning_rate=ours.learning_rate, betas=BETAS)
            restore_adam(ours, saved, "adam")
        ours.step()
        theirs.step()
        for got, value in zip(tensors, wanted, strict=True):
            torch.testing.assert_close(got, value, rtol=1e-6, atol=1e-7)


def test_a_checkpoint_has_the_names_of_torchs_own_state() -> None:
    tensors = make_tensors()
    theirs = torch.optim.Adam(tensors)
    give_gradients(tensors, 1)
    theirs.step()
    wanted = {f"adam.{place}.{name}" for place, state in theirs.state_dict()["state"].items() for name in state}
    assert set(adam_tensors(Adam(tensors, learning_rate=0.1, betas=BETAS), "adam")) == wanted


def test_a_missing_gradient_is_an_error_and_moves_nothing() -> None:
    tensors = make_tensors()
    adam = Adam(tensors, learning_rate=0.1, betas=BETAS)
    give_gradients(tensors, 1)
    adam.zero_grad()
    tensors[0].grad = torch.ones(SHAPES[0])
    with pytest.raises(ValueError, match="no gradient"):
        adam.step()
    assert all(torch.equal(got, value) for got, value in zip(tensors, make_tensors(), strict=True))


def test_a_training_does_not_load_torchs_compiler() -> None:
    code = """
import sys, torch
from workers.methods.idpgan import tables as table_idpgan
from workers.numerics.adam import Adam
tensor = torch.ones(3).requires_grad_()
adam = Adam([tensor], learning_rate=0.1, betas=(0.5, 0.9))
tensor.sum().backward()
adam.step()
print([name for name in ("torch._dynamo", "torch._inductor", "sympy") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
