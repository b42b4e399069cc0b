"""The published generator of rows: one ZIP that people can use with numpy and onnxruntime. Post-processing; no pickle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from service.domain.row_config import written_to_config
from service.samples.shipped import table_script
from workers.generators.archive import to_json
from workers.generators.onnx_export import compare, export, for_export
from workers.generators.table.card import table_card
from workers.networks.mixture import MixtureGenerator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.domain.table_schema import TableSchema
    from workers.encoding.table import TableDomain

_CHECKED_ROWS = 257


def table_files(
    generator: torch.nn.Module,
    domain: TableDomain,
    *,
    noise_dimension: int,
    condition_index: int | None,
    condition_frequencies: Sequence[float] | None,
    schema: TableSchema,
    certificate: Mapping[str, Any],
    order: Mapping[str, Any],
) -> dict[str, bytes]:
    """The files of a generator whose forward(noise, condition | None) returns the logits of all columns.

    condition_frequencies: one per category of the condition column, noisy; negative ones count as zero.
    """
    generator, weights = for_export(generator)
    condition = _condition(domain, condition_index, condition_frequencies)
    categories = domain.columns[condition_index].size if condition_index is not None else None
    config = {
        "format": 1,
        "kind": "table",
        "generator": "mixture" if isinstance(generator, MixtureGenerator) else "network",
        "noise_dimension": noise_dimension,
        "columns": domain.to_config(),
        "exclusions": domain.exclusions_to_config(),
        **written_to_config(schema),
        "condition": condition,
        "schema": schema.as_json(),
        "missing_value": schema.missing_values[0] if schema.missing_values else "",
    }
    card = table_card(
        domain=domain, condition=condition["column"] if condition else None, certificate=certificate, order=order
    )
    return {
        "generator.onnx": export_onnx(generator, noise_dimension=noise_dimension, categories=categories),
        "generator.safetensors": weights,
        "config.json": to_json(config),
        "MODEL_CARD.md": card.encode(),
        "sample.py": table_script(),
    }


def export_onnx(generator: torch.nn.Module, *, noise_dimension: int, categories: int | None) -> bytes:
    """The network as ONNX for any batch size, compared with torch on random inputs before it is returned."""
    onnx_bytes = export(generator, _random_inputs(2, noise_dimension, categories), "logits")
    compare(generator, onnx_bytes, _random_inputs(_CHECKED_ROWS, noise_dimension, categories))
    return onnx_bytes


def _random_inputs(rows: int, noise_dimension: int, categories: int | None) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    noise = {"noise": torch.randn(rows, noise_dimension, generator=random)}
    return noise if categories is None else {**noise, "condition": torch.randint(categories, (rows,), generator=random)}


def _condition(domain: TableDomain, index: int | None, frequencies: Sequence[float] | None) -> dict[str, Any] | None:
    if index is None:
        return None
    column = domain.columns[index]
    counts = np.clip(np.asarray(frequencies, dtype=np.float64), 0.0, None)
    if column.kind != "categories" or counts.shape != (column.size,):
        raise ValueError("the condition must be a categorical column with one frequency per category")
    total = counts.sum()
    shares = counts / total if total > 0 else np.full(column.size, 1 / column.size)
    return {"column": column.name, "frequencies": shares.tolist()}
