"""The published generator: one ZIP that a stranger can use with numpy and onnxruntime. Post-processing; no pickle."""

from __future__ import annotations

import copy
import io
import json
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import safetensors.torch
import torch

from service.samples.shipped import table_script
from workers.generators.released import UnusableGeneratorError
from workers.generators.table.card import model_card
from workers.networks.mixture import MixtureGenerator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.domain.table_schema import TableSchema
    from workers.encoding.table import TableDomain

OPSET = 17  # the first with LayerNormalization
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the same contents give the same bytes
_CHECKED_ROWS = 257
TOLERANCE = 1e-4


def build_bundle(
    generator: torch.nn.Module,
    domain: TableDomain,
    *,
    noise_dimension: int,
    condition_index: int | None,
    condition_frequencies: Sequence[float] | None,
    schema: TableSchema,
    certificate: Mapping[str, Any],
    order: Mapping[str, Any],
) -> bytes:
    """The ZIP of a generator whose forward(noise, condition | None) returns the logits of all columns.

    condition_frequencies: one per category of the condition column, noised; negative ones count as zero.
    """
    generator = copy.deepcopy(generator).cpu().float().eval()
    weights = {name: tensor.detach().contiguous() for name, tensor in generator.state_dict().items()}
    if not all(bool(torch.isfinite(tensor).all()) for tensor in weights.values()):
        raise UnusableGeneratorError("The generator's weights are not finite: training diverged.")
    condition = _condition(domain, condition_index, condition_frequencies)
    categories = domain.columns[condition_index].size if condition_index is not None else None
    config = {
        "format": 1,
        "kind": "table",
        "generator": "mixture" if isinstance(generator, MixtureGenerator) else "network",
        "noise_dimension": noise_dimension,
        "columns": domain.to_config(),
        "exclusions": domain.exclusions_to_config(),
        "condition": condition,
        "schema": schema.as_json(),
        "missing_value": schema.missing_values[0] if schema.missing_values else "",
    }
    card = model_card(
        domain=domain, condition=condition["column"] if condition else None, certificate=certificate, order=order
    )
    return pack(
        {
            "generator.onnx": export_onnx(generator, noise_dimension=noise_dimension, categories=categories),
            "generator.safetensors": safetensors.torch.save(weights),
            "config.json": to_json(config),
            "certificate.json": to_json(certificate),
            "MODEL_CARD.md": card.encode(),
            "sample.py": table_script(),
        }
    )


def export_onnx(generator: torch.nn.Module, *, noise_dimension: int, categories: int | None) -> bytes:
    """The network as ONNX for any batch size, compared with torch on random inputs before it is returned."""
    inputs = _random_inputs(2, noise_dimension, categories)
    names = ["noise", "condition"][: len(inputs)]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), torch.no_grad():
        path = Path(folder) / "generator.onnx"
        # The TorchScript exporter: the newer one would need one more dependency for the same few operators.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            generator,
            inputs,
            path,
            dynamo=False,
            opset_version=OPSET,
            input_names=names,
            output_names=["logits"],
            dynamic_axes={name: {0: "batch"} for name in (*names, "logits")},
        )
        onnx_bytes = path.read_bytes()
    _compare(generator, onnx_bytes, _random_inputs(_CHECKED_ROWS, noise_dimension, categories))
    return onnx_bytes


def _compare(generator: torch.nn.Module, onnx_bytes: bytes, inputs: tuple[torch.Tensor, ...]) -> None:
    session = onnxruntime.InferenceSession(onnx_bytes, providers=["CPUExecutionProvider"])
    feed = {name: tensor.numpy() for name, tensor in zip(("noise", "condition"), inputs, strict=False)}
    (exported,) = session.run(["logits"], feed)
    with torch.no_grad():
        expected = generator(*inputs).numpy()
    scale = 1.0 + float(np.abs(expected).max())
    if exported.shape != expected.shape or not np.abs(exported - expected).max() <= TOLERANCE * scale:
        raise UnusableGeneratorError("The exported generator does not compute what the trained one does.")


def _random_inputs(rows: int, noise_dimension: int, categories: int | None) -> tuple[torch.Tensor, ...]:
    random = torch.Generator().manual_seed(0)
    noise = torch.randn(rows, noise_dimension, generator=random)
    return (noise,) if categories is None else (noise, torch.randint(categories, (rows,), generator=random))


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


def to_json(document: Any) -> bytes:
    return (json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()


def pack(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name, date_time=_LONG_AGO)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3
            member.external_attr = 0o100644 << 16
            archive.writestr(member, content)
    return buffer.getvalue()
