"""Image generators small enough to know what they draw: image = clip(brightness of the component + small noise)."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from service.samples.image_sampler import ImageSampler

NOISE_DIMENSION = 3
SHAPE = (4, 5, 1)
BRIGHTNESS = (0.2, 0.4, 0.6, 0.8)
LABELS = (0, 1, 1, 2)
"""Four components, of which class 1 has two."""


def tiny_image_files(shape=SHAPE, classes=("a", "b", "c"), frequencies=(1, 1, 1, 1), *, one_a_run=True):
    """config and ONNX bytes."""
    pixels = int(np.prod(shape))
    weights = 0.01 * np.random.default_rng(0).standard_normal((NOISE_DIMENSION, pixels))
    table = np.repeat(np.array(BRIGHTNESS)[:, None], pixels, axis=1)
    constants = {"weights": weights, "table": table, "zero": np.zeros(()), "one": np.ones(())}
    nodes = [
        helper.make_node("MatMul", ["noise", "weights"], ["moved"]),
        helper.make_node("Gather", ["table", "condition"], ["centre"]),
        helper.make_node("Add", ["moved", "centre"], ["flat"]),
        helper.make_node("Clip", ["flat", "zero", "one"], ["inside"]),
        helper.make_node("Reshape", ["inside", "shape"], ["images"]),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info("noise", TensorProto.FLOAT, ["batch", NOISE_DIMENSION]),
            helper.make_tensor_value_info("condition", TensorProto.INT64, ["component"]),
        ],
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", *shape])],
        [numpy_helper.from_array(np.asarray(value, dtype=np.float32), name) for name, value in constants.items()]
        + [numpy_helper.from_array(np.array([-1, *shape], dtype=np.int64), "shape")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    config = {
        "format": 1,
        "kind": "image",
        "height": shape[0],
        "width": shape[1],
        "channels": shape[2],
        "classes": list(classes),
        "noise_dimension": NOISE_DIMENSION,
        "condition": {"labels": list(LABELS), "frequencies": list(frequencies), "one_a_run": one_a_run},
    }
    return config, model.SerializeToString()


def tiny_image_sampler(*arguments, **options):
    return ImageSampler.from_files(*tiny_image_files(*arguments, **options))


def tiny_image_bundle():
    config, onnx_bytes = tiny_image_files()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("generator.onnx", onnx_bytes)
    return buffer.getvalue()
