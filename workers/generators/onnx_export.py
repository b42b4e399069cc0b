"""A trained network as ONNX and as safetensors. What is not finite, or differs from the original, is not published."""

from __future__ import annotations

import copy
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import safetensors.torch
import torch

from service.samples.onnx_files import NotSelfContainedError, require_self_contained
from workers.generators.errors import UnusableGeneratorError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

OPSET = 17
"""The first with LayerNormalization."""
TOLERANCE = 1e-4
"""Largest difference between export and original, in units of the largest output where that is above 1."""


def for_export(generator: torch.nn.Module) -> tuple[torch.nn.Module, bytes]:
    """A copy in eval mode on the CPU, and its weights as safetensors; the generator itself stays as it is."""
    generator = copy.deepcopy(generator).cpu().float().eval()
    weights = {name: tensor.detach().contiguous() for name, tensor in generator.state_dict().items()}
    if not all(bool(torch.isfinite(tensor).all()) for tensor in weights.values()):
        raise UnusableGeneratorError("The generator's weights are not finite: training diverged.")
    return generator, safetensors.torch.save(weights)


def export(
    generator: torch.nn.Module, example: Mapping[str, Tensor], output: str, *, one_for_all: frozenset[str] = frozenset()
) -> bytes:
    """The network as ONNX for any batch size. Compare it before it is published.

    example: name -> input, in the order of forward. one_for_all: inputs that do not grow with the batch.
    """
    growing = [name for name in (*example, output) if name not in one_for_all]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), torch.no_grad():
        path = Path(folder) / "generator.onnx"
        # The TorchScript exporter: the newer one would need one more dependency for the same few operators.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            generator,
            tuple(example.values()),
            path,
            dynamo=False,
            opset_version=OPSET,
            input_names=list(example),
            output_names=[output],
            dynamic_axes={name: {0: "batch"} for name in growing},
        )
        onnx_bytes = path.read_bytes()
    try:
        require_self_contained(onnx_bytes)
    except NotSelfContainedError as error:
        raise UnusableGeneratorError(f"The generator is not published: {error}.") from None
    return onnx_bytes


def compare(generator: torch.nn.Module, onnx_bytes: bytes, *inputs: Mapping[str, Tensor]) -> None:
    """Raises where the export does not compute what the network does, for any of these inputs."""
    session = onnxruntime.InferenceSession(onnx_bytes, providers=["CPUExecutionProvider"])
    for each in inputs:
        (exported,) = session.run(None, {name: tensor.numpy() for name, tensor in each.items()})
        with torch.no_grad():
            expected = generator(*each.values()).numpy()
        allowed = TOLERANCE * max(1.0, float(np.abs(expected).max()))
        if exported.shape != expected.shape or not np.abs(exported - expected).max() <= allowed:
            raise UnusableGeneratorError("The exported generator does not compute what the trained one does.")
