"""What `dpgm` and `dpsyn` make of data with an obvious structure, at an ε that leaves little noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from service.domain.image_schema import parse_schema
from service.methods.catalogue import CATALOGUE, parse_order
from tests.runs import train
from workers.encoding.table import EncodedTable, TableDomain
from workers.mechanism.secure_random import SecureRandom
from workers.methods.dpgm.clusters import Fourier, first_centres, moved_centres
from workers.methods.dpgm.records import PlacedRecords
from workers.methods.dpgm.training import shares_of
from workers.networks.autoencoders import Decoder
from workers.networks.latent_mixture import LatentGaussians, LatentRows
from workers.plan import Plan

UNITS = 2_000
SCHEMA = {
    "fields": [
        {"name": "colour", "type": "string", "constraints": {"enum": ["red", "green"], "required": True}},
        {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 5, "required": True}},
        {"name": "weight", "type": "integer", "constraints": {"minimum": 0, "maximum": 5, "required": True}},
    ],
    "target": "colour",
}


def table() -> tuple[EncodedTable, TableDomain]:
    """Weight is size, and red things are small; two in three are red."""
    rng = np.random.default_rng(0)
    colour = (rng.random(UNITS) > 2 / 3).astype(np.uint16)
    size = rng.integers(0, 3, UNITS) + 3 * colour
    domain = TableDomain.from_schema(parse_schema(SCHEMA), numeric_bins=6)  # type: ignore[arg-type]
    return EncodedTable(np.stack([colour, size, size], axis=1).astype(np.uint16), UNITS, None, 1, {}), domain


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "knobs"), [("dpgm", {"clusters": 1}), ("dpgm", {"clusters": 3}), ("dpsyn", {"gaussians": 2})]
)
def test_rows_have_the_structure_of_the_table(method: str, knobs: dict[str, Any]) -> None:
    rows, domain = table()
    sizes = {"hidden_units": 24, "latent_numbers": 3}
    order = parse_order(
        {"method": method, "epsilon": 8.0, "steps": 250, "learning_rate": 0.01, "autoencoder": sizes, **knobs}
    )
    order = order.model_copy(update={"condition_on": "colour", "sampling_probability": 0.2})
    events = CATALOGUE[method].events(order, 8.0, 1e-6)(0.5)  # type: ignore[arg-type]
    made = train(order, Plan(events), rows, domain, SecureRandom.from_test_seed(3))  # type: ignore[arg-type]
    assert made.condition_frequencies is not None
    assert abs(made.condition_frequencies[0] - 2 / 3) < 0.03
    colour = torch.arange(2_000) % 2
    logits = made.generator(torch.randn(2_000, made.noise_dimension), colour)
    parts = torch.split(logits, [2, 6, 6], dim=1)
    drawn, size, weight = (torch.distributions.Categorical(logits=part).sample() for part in parts)
    assert torch.equal(drawn, colour)
    assert float(((size >= 3) == (colour == 1)).double().mean()) > 0.85
    assert float((size == weight).double().mean()) > 0.6  # a third if they were drawn apart


def test_clusters_are_found_that_are_apart() -> None:
    """Without noise: three kinds of rows end in three clusters."""
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 3, 600)
    domain = TableDomain.from_schema(parse_schema(SCHEMA), numeric_bins=6)  # type: ignore[arg-type]
    codes = np.stack([kind == 2, 2 * kind, 2 * kind + rng.integers(0, 2, 600)], axis=1).astype(np.uint16)
    records = PlacedRecords(EncodedTable(codes, 600, None, 1, {}), domain, None, torch.device("cpu"))
    fourier = Fourier.drawn(records, features=64, kernel_width=1.0, scale=256.0)
    whole = fourier.of(records)
    vectors = whole.vectors.astype(np.float64)
    assert np.linalg.norm(vectors, axis=1).max() <= whole.longest
    centres = first_centres(vectors.mean(axis=0), 3, 256.0, np.random.default_rng(0))
    for _ in range(6):
        nearest = np.square(vectors[:, None] - centres[None]).sum(axis=2).argmin(axis=1)
        counts = np.bincount(nearest, minlength=3).astype(np.float64)
        sums = np.stack([(vectors[nearest == k] - centres[k]).sum(axis=0) for k in range(3)])
        centres = moved_centres(centres, counts, sums, (1e-9, 1e-9))
    pairs = {(int(a), int(b)) for a, b in zip(kind, nearest, strict=True)}
    assert len(pairs) == 3


def test_features_of_the_narrowest_kernel_are_no_longer_than_declared() -> None:
    """Its weights are beyond float32: cosines that are no numbers became whole numbers of 2^31."""
    rows, domain = table()
    records = PlacedRecords(rows, domain, None, torch.device("cpu"))
    whole = Fourier.drawn(records, features=8, kernel_width=1e-300, scale=256.0).of(records)
    assert np.linalg.norm(whole.vectors.astype(np.float64), axis=1).max() <= whole.longest


def test_shares_leave_out_what_may_be_noise_and_always_sum_to_one() -> None:
    shares = shares_of(np.array([[100.0, 300.0, 5.0], [-3.0, 4.0, 0.0], [-1.0, -2.0, -3.0]]), least=10.0)
    assert shares[0].tolist() == [0.25, 0.75, 0.0]
    assert shares[1].tolist() == [0.0, 1.0, 0.0]
    assert shares.sum(dim=1).tolist() == [1.0, 1.0, 1.0]


def test_gaussians_are_picked_as_often_as_they_should_be() -> None:
    """By the first number of the noise, within each label."""
    shares = torch.tensor([[0.2, 0.0, 0.8], [0.5, 0.25, 0.25]], dtype=torch.float64)
    decoder = Decoder(blocks=3, hidden=3, latent=1, labels=0, width=3)
    with torch.no_grad():  # the logits say which block was picked
        decoder.output_weight.zero_()
        decoder.output_bias.copy_(50.0 * torch.eye(3))
    rows = LatentRows(decoder, LatentGaussians.standard(shares, 1), label_inputs=0, condition=(0, 2)).eval()
    noise = torch.randn(40_000, 2, generator=torch.Generator().manual_seed(0))
    for label in range(2):
        logits = rows(noise, torch.full((len(noise),), label))
        picked = torch.bincount(logits[:, 2:].argmax(dim=1), minlength=3) / len(noise)
        assert torch.allclose(picked.double(), shares[label], atol=0.01)
        assert (logits[:, :2].argmax(dim=1) == label).all()
