from __future__ import annotations

import io

import numpy as np
import onnxruntime
import pytest
import torch

from workers.mechanism.secure_random import SecureRandom
from workers.networks.table import TableCritic, TableGenerator, one_hot_records, sample_records, softmax_of_columns

WIDTHS = (3, 2, 4)


@pytest.mark.parametrize("condition_index", [None, 0, 1, 2])
def test_a_fake_record_has_one_category_per_column_and_its_own_condition(condition_index: int | None) -> None:
    torch.manual_seed(1)
    generator = TableGenerator(WIDTHS, noise_dimension=5, hidden=(8, 7), condition_index=condition_index)
    condition = None if condition_index is None else torch.arange(200) % WIDTHS[condition_index]
    noise = torch.randn(200, 5)
    logits = generator(noise, condition)
    assert logits.shape == (200, 9)
    uniforms = SecureRandom.from_test_seed(1).uniforms(200, 9, dtype=torch.float32)
    free = generator.free_logits(noise, condition)
    widths = [width for index, width in enumerate(WIDTHS) if index != condition_index]
    drawn = sample_records(free, widths, uniforms[:, : sum(widths)], 0.5)
    for record in (sample_records(logits, WIDTHS, uniforms, 0.5), generator.with_condition(drawn, condition)):
        assert_a_draw(record, condition_index, condition)


def assert_a_draw(record: torch.Tensor, condition_index: int | None, condition: torch.Tensor | None) -> None:
    for index, part in enumerate(record.split(WIDTHS, dim=1)):
        torch.testing.assert_close(part.sum(dim=1), torch.ones(200))
        torch.testing.assert_close(part.max(dim=1)[0], torch.ones(200))
        if index == condition_index:
            assert torch.equal(part.argmax(dim=1), condition)


def test_a_condition_may_be_the_only_column() -> None:
    generator = TableGenerator((3,), noise_dimension=5, hidden=(8,), condition_index=0)
    condition = torch.tensor([2, 0])
    free = generator.free_logits(torch.randn(2, 5), condition)
    assert free.shape == softmax_of_columns(free, ()).shape == (2, 0)
    records = generator.with_condition(sample_records(free, (), torch.rand(2, 0), 0.5), condition)
    assert records.tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    gradients = torch.autograd.grad(records.sum(), list(generator.parameters()))  # a generator's step goes this way
    assert not any(gradient.any() for gradient in gradients)


def test_draws_follow_the_softmax_and_gradients_flow() -> None:
    logits = torch.tensor([[0.0, 1.0, -1.0]]).repeat(40_000, 1).requires_grad_()
    uniforms = SecureRandom.from_test_seed(1).uniforms(40_000, 3, dtype=torch.float32)
    records = sample_records(logits, (3,), uniforms, 0.5)
    torch.testing.assert_close(records.mean(dim=0), logits[0].softmax(dim=0), atol=0.01, rtol=0.0)
    records[:, 0].sum().backward()
    assert logits.grad is not None
    assert bool((logits.grad[:, 0] >= 0).all())
    assert float(logits.grad.norm()) > 0


@pytest.mark.parametrize("widths", [(3, 2, 4), (30, 2, 2, 2, 2, 2, 2), (5,)])
def test_the_softmax_of_columns_is_that_of_every_column(widths: tuple[int, ...]) -> None:
    logits = torch.randn(6, sum(widths), dtype=torch.float64, requires_grad=True)
    found = softmax_of_columns(logits, widths)
    wanted = torch.cat([part.softmax(dim=1) for part in logits.split(widths, dim=1)], dim=1)
    torch.testing.assert_close(found, wanted)
    weights = torch.randn_like(wanted)
    gradients = (torch.autograd.grad((weights * soft).sum(), logits)[0] for soft in (found, wanted))
    torch.testing.assert_close(*gradients)


def test_one_hot_records_and_null_records() -> None:
    codes = torch.tensor([[2, 1, 3], [65_535] * 3, [0, 0, 0], [0, 2, 0]])
    records, present = one_hot_records(codes, WIDTHS)
    assert present.tolist() == [True, False, True, False]
    assert records.tolist() == [
        [0, 0, 1, 0, 1, 0, 0, 0, 1],
        [0] * 9,
        [1, 0, 0, 1, 0, 1, 0, 0, 0],
        [0] * 9,
    ]


def test_the_critic_never_mixes_records_and_has_no_last_bias() -> None:
    critic = TableCritic(9, (6, 5))
    records = torch.randn(4, 9)
    alone = torch.cat([critic(record.unsqueeze(0)) for record in records])
    torch.testing.assert_close(critic(records), alone)
    assert [tuple(tensor.shape) for tensor in critic.parameters()] == [(6, 9), (6,), (5, 6), (5,), (1, 5)]
    assert not critic(torch.zeros(1, 9)).isnan().any()


@pytest.mark.parametrize("condition_index", [None, 1])
def test_the_generator_exports_to_onnx(condition_index: int | None) -> None:
    generator = TableGenerator(WIDTHS, noise_dimension=5, hidden=(8, 7), condition_index=condition_index).eval()
    noise = torch.randn(6, 5)
    inputs = {"noise": noise}
    if condition_index is not None:
        inputs["condition"] = torch.arange(6) % 2
    file = io.BytesIO()
    torch.onnx.export(
        generator,
        tuple(inputs.values()),
        file,
        input_names=list(inputs),
        output_names=["logits"],
        dynamic_axes={name: {0: "batch"} for name in (*inputs, "logits")},
        dynamo=False,
    )
    session = onnxruntime.InferenceSession(file.getvalue())
    for rows in (6, 1):
        (logits,) = session.run(None, {name: value[:rows].numpy() for name, value in inputs.items()})
        wanted = generator(*(value[:rows] for value in inputs.values())).detach().numpy()
        np.testing.assert_allclose(logits, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("error")
def test_a_condition_alone_needs_no_warning():
    """A worker's log says nothing that is not listed."""
    generator = TableGenerator((3,), noise_dimension=4, hidden=(8,), condition_index=0)
    assert generator(torch.randn(5, 4), torch.zeros(5, dtype=torch.int64)).shape == (5, 3)
