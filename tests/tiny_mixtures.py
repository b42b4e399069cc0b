"""Mixtures small enough to know their distribution."""

import io
import json
import zipfile

import torch
from tiny_generators import domain_of

from service.domain.table_schema import parse_table_schema
from service.samples.table.sampler import TableSampler
from tests.bundles import build_bundle
from workers.networks.mixture import MixtureGenerator


def mixture_files(schema, logits, *, frequencies=None, condition=0, numeric_bins=8):
    """config and ONNX bytes; logits: (conditions, components, width)."""
    domain = domain_of(schema, numeric_bins)
    generator = MixtureGenerator(logits)
    bundle = build_bundle(
        generator.eval(),
        domain,
        noise_dimension=generator.noise_dimension,
        condition_index=None if frequencies is None else condition,
        condition_frequencies=frequencies,
        schema=parse_table_schema(schema),
        certificate={},
        order={},
    )
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        return json.loads(archive.read("config.json")), archive.read("generator.onnx")


def tiny_mixture(
    schema, *, components=64, frequencies=None, spread=1.5, seed=5, numeric_bins=8, shared=None, **options
):
    """A sampler of random logits. shared: name -> values that many rows share, each with its part of its bin."""
    random = torch.Generator().manual_seed(seed)
    width = domain_of(schema, numeric_bins).total_width
    logits = spread * torch.randn(len(frequencies or [1]), components, width, generator=random)
    config, network = mixture_files(schema, logits, frequencies=frequencies, numeric_bins=numeric_bins, **options)
    for column in config["columns"]:
        if column["name"] in (shared or {}):
            column["shared_values"] = shared[column["name"]]
    return TableSampler.from_files(config, network)
