"""The published generator of images: the same ZIP as a table's, with pixels out instead of logits. Post-processing."""

from __future__ import annotations

import copy
import tempfile
import warnings
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import safetensors.torch
import torch

from workers.generators.image.card import image_card
from workers.generators.released import UnusableGeneratorError
from workers.generators.table.bundle import OPSET, TOLERANCE, pack, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.domain.image_schema import ImageSchema

_CHECKED_IMAGES = 33
_CHECKED_COMPONENTS = 5


def build_image_bundle(
    generator: torch.nn.Module,
    schema: ImageSchema,
    *,
    noise_dimension: int,
    component_labels: Sequence[int],
    component_frequencies: Sequence[float],
    one_a_run: bool,
    certificate: Mapping[str, Any],
    order: Mapping[str, Any],
) -> bytes:
    """The ZIP of a generator whose forward(noise (n, r), condition) returns images between 0 and 1.

    component_labels and component_frequencies: one per component, its class and its noised share.
    one_a_run: condition is (1,), all images of a call are of one component; otherwise (n,), a component for each.
    """
    generator = copy.deepcopy(generator).cpu().float().eval()
    weights = {name: tensor.detach().contiguous() for name, tensor in generator.state_dict().items()}
    if not all(bool(torch.isfinite(tensor).all()) for tensor in weights.values()):
        raise UnusableGeneratorError("The generator's weights are not finite.")
    config = {
        "format": 1,
        "kind": "image",
        "height": schema.height,
        "width": schema.width,
        "channels": schema.channels,
        "classes": list(schema.class_names),
        "noise_dimension": noise_dimension,
        "condition": {
            "labels": list(component_labels),
            "frequencies": list(component_frequencies),
            "one_a_run": one_a_run,
        },
        "schema": schema.as_json(),
    }
    return pack(
        {
            "generator.onnx": _export(generator, noise_dimension, len(component_labels), one_a_run=one_a_run),
            "generator.safetensors": safetensors.torch.save(weights),
            "config.json": to_json(config),
            "certificate.json": to_json(certificate),
            "MODEL_CARD.md": image_card(schema=schema, certificate=certificate, order=order).encode(),
            "sample.py": resources.files("service.samples").joinpath("image_sampler.py").read_bytes(),
        }
    )


def _export(generator: torch.nn.Module, noise_dimension: int, components: int, *, one_a_run: bool) -> bytes:
    """As ONNX for any number of images, compared with torch before it is returned."""

    def inputs(images: int, component: int) -> tuple[torch.Tensor, torch.Tensor]:
        random = torch.Generator().manual_seed(0)
        condition = torch.full((1 if one_a_run else images,), component)
        return torch.randn(images, noise_dimension, generator=random), condition

    axes = {"noise": {0: "batch"}, "images": {0: "batch"}} | ({} if one_a_run else {"condition": {0: "batch"}})
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), torch.no_grad():
        path = Path(folder) / "generator.onnx"
        warnings.simplefilter("ignore")  # see bundle.py on the exporter
        torch.onnx.export(
            generator,
            inputs(2, 0),
            path,
            dynamo=False,
            opset_version=OPSET,
            input_names=["noise", "condition"],
            output_names=["images"],
            dynamic_axes=axes,
        )
        onnx_bytes = path.read_bytes()
    session = onnxruntime.InferenceSession(onnx_bytes, providers=["CPUExecutionProvider"])
    for component in np.linspace(0, components - 1, min(components, _CHECKED_COMPONENTS)).astype(int).tolist():
        noise, condition = inputs(_CHECKED_IMAGES, component)
        (exported,) = session.run(["images"], {"noise": noise.numpy(), "condition": condition.numpy()})
        with torch.no_grad():
            expected = generator(noise, condition).numpy()
        if exported.shape != expected.shape or not np.abs(exported - expected).max() <= TOLERANCE:
            raise UnusableGeneratorError("The exported generator does not compute what the original does.")
    return onnx_bytes
