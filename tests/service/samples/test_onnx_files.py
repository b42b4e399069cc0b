"""An ONNX file that names another file, in whatever place, is not loaded."""

import io
import json
import zipfile

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tiny_image_generators import tiny_image_files

from service.base.errors import Tampered
from service.samples.onnx_files import NotSelfContainedError, require_self_contained
from service.samples.samplers import sampler_from_bundle


def external(name="weights", location="secret", shape=(4,)):
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


def model_of(nodes, initializers=(), **more):
    noise = helper.make_tensor_value_info("noise", TensorProto.FLOAT, [4])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, [4])
    graph = helper.make_graph(nodes, "g", [noise], [out], list(initializers), **more)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


ADD = helper.make_node("Add", ["noise", "weights"], ["out"])
PLAIN = numpy_helper.from_array(np.ones(4, dtype=np.float32), "weights")


def in_an_attribute():
    constant = helper.make_node("Constant", [], ["weights"], value=external())
    return model_of([constant, ADD])


def in_a_branch():
    inner = helper.make_graph(
        [ADD], "inner", [], [helper.make_tensor_value_info("out", TensorProto.FLOAT, [4])], [external()]
    )
    condition = numpy_helper.from_array(np.array(True), "yes")
    return model_of([helper.make_node("If", ["yes"], ["out"], then_branch=inner, else_branch=inner)], [condition])


def sparse():
    model = model_of([ADD])
    of = model.graph.sparse_initializer.add()
    of.values.CopyFrom(external())
    return model


def listed_and_called_internal():
    tensor = external()
    tensor.data_location = TensorProto.DEFAULT
    return model_of([ADD], [tensor])


def of_another_domain():
    return model_of(
        [helper.make_node("EPContext", ["noise"], ["out"], domain="com.microsoft", ep_cache_context="x.bin")]
    )


def with_a_function():
    function = helper.make_function(
        "own", "F", ["x"], ["y"], [helper.make_node("Neg", ["x"], ["y"])], [helper.make_opsetid("", 17)]
    )
    model = model_of([ADD], [PLAIN])
    model.functions.append(function)
    return model


@pytest.mark.parametrize(
    "make",
    [
        lambda: model_of([ADD], [external()]),
        in_an_attribute,
        in_a_branch,
        sparse,
        listed_and_called_internal,
        of_another_domain,
        with_a_function,
    ],
    ids=["initializer", "attribute", "branch", "sparse", "not marked", "domain", "function"],
)
def test_what_names_another_file_is_refused(make):
    with pytest.raises(NotSelfContainedError):
        require_self_contained(make().SerializeToString())


def test_a_model_that_is_whole_passes():
    for model in (model_of([ADD], [PLAIN]), onnx.load_from_string(tiny_image_files()[1])):
        require_self_contained(model.SerializeToString())


@pytest.mark.parametrize(
    "content", [b"", b"no model at all", b"\x08\x08", b"\x3a\xff", b"\x1c\x00\x00\x00ORTM", b"\x0b" * 9]
)
def test_what_is_no_model_is_refused(content):
    with pytest.raises(NotSelfContainedError, match="not an ONNX file"):
        require_self_contained(content)


def test_graphs_without_end_are_refused():
    graph = b""
    for _ in range(40):  # graph > node > attribute > graph
        for number in (6, 5, 1):
            graph = bytes([number << 3 | 2]) + helper_length(len(graph)) + graph
    with pytest.raises(NotSelfContainedError, match="without end"):
        require_self_contained(b"\x3a" + helper_length(len(graph)) + graph)


def helper_length(value):
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])


def test_the_service_does_not_load_it():
    config, onnx_bytes = tiny_image_files()
    model = onnx.load_from_string(onnx_bytes)
    model.graph.initializer.append(external("unused"))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("generator.onnx", model.SerializeToString())
    with pytest.raises(Tampered, match="external data"):
        sampler_from_bundle(buffer.getvalue())
