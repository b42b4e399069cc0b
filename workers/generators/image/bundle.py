"""The published generator of images: the same ZIP as a table's, with pixels out instead of logits. Post-processing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from service.samples.shipped import image_script
from workers.generators.archive import to_json
from workers.generators.image.card import image_card
from workers.generators.onnx_export import compare, export, for_export

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.domain.image_schema import ImageSchema

_CHECKED_IMAGES = 33
_CHECKED_COMPONENTS = 5


def image_files(
    generator: torch.nn.Module,
    schema: ImageSchema,
    *,
    noise_dimension: int,
    component_labels: Sequence[int],
    component_frequencies: Sequence[float],
    one_a_run: bool,
    certificate: Mapping[str, Any],
    order: Mapping[str, Any],
) -> dict[str, bytes]:
    """The files of a generator whose forward(noise (n, r), condition) returns images between 0 and 1.

    component_labels and component_frequencies: one per component, its class and its noisy frequency.
    one_a_run: condition is (1,), all images of a call are of one component; otherwise (n,), a component for each.
    """
    generator, weights = for_export(generator)
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
    return {
        "generator.onnx": _export(generator, noise_dimension, len(component_labels), one_a_run=one_a_run),
        "generator.safetensors": weights,
        "config.json": to_json(config),
        "MODEL_CARD.md": image_card(schema=schema, certificate=certificate, order=order).encode(),
        "sample.py": image_script(),
    }


def _export(generator: torch.nn.Module, noise_dimension: int, components: int, *, one_a_run: bool) -> bytes:
    """As ONNX for any number of images, compared with torch before it is returned."""

    def inputs(images: int, component: int) -> dict[str, torch.Tensor]:
        random = torch.Generator().manual_seed(0)
        return {
            "noise": torch.randn(images, noise_dimension, generator=random),
            "condition": torch.full((1 if one_a_run else images,), component),
        }

    one_for_all = frozenset({"condition"}) if one_a_run else frozenset()
    onnx_bytes = export(generator, inputs(2, 0), "images", one_for_all=one_for_all)
    checked = np.linspace(0, components - 1, min(components, _CHECKED_COMPONENTS)).astype(int).tolist()
    compare(generator, onnx_bytes, *(inputs(_CHECKED_IMAGES, component) for component in checked))
    return onnx_bytes
