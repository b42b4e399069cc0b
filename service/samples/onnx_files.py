"""That an ONNX file is whole in itself: a network of standard operators that names no other file.

onnxruntime may open files that a model names: tensors with external data, and operators of other domains that load
compiled parts. So the model is walked before it is loaded, by the few fields of its protobuf form that can hold either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

DEEPEST = 32
"""Graphs in graphs."""
ORT_FORMAT = b"ORTM"
"""onnxruntime takes files with these bytes for its own format, which is another."""
STANDARD = frozenset({b"", b"ai.onnx"})

_PARTS = {
    "model": {7: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse tensor", 23: "sparse tensor"},
    "sparse tensor": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
"""Message -> number of a field -> message in it. Numbers as in onnx.proto; they never change."""
_FORBIDDEN = {
    "model": {20: "training steps", 25: "functions of its own"},
    "tensor": {13: "external data", 14: "external data"},
}
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5


class NotSelfContainedError(ValueError):
    """An ONNX file that names other files, or cannot be read."""


def require_self_contained(onnx_bytes: bytes) -> None:
    """Raises `NotSelfContainedError` unless the model is of standard operators and all its tensors lie in it."""
    if onnx_bytes[4:8] == ORT_FORMAT:
        raise NotSelfContainedError("this is not an ONNX file")
    waiting: list[tuple[str, memoryview, int]] = [("model", memoryview(onnx_bytes), 0)]
    has_graph = False
    while waiting:
        kind, message, depth = waiting.pop()
        if depth > DEEPEST:
            raise NotSelfContainedError("the ONNX file has graphs in graphs without end")
        for number, wire, value in _fields(message):
            what = _FORBIDDEN.get(kind, {}).get(number)
            # A location of 0 is the default: in the file itself.
            if what is not None and not (number == 14 and wire == _VARINT and value == 0):
                raise NotSelfContainedError(
                    f"the ONNX file has {what}: only files that are whole in themselves are used"
                )
            if kind == "node" and number == 7 and (wire != _BYTES or bytes(_view(value)) not in STANDARD):
                raise NotSelfContainedError("the ONNX file has operators that are not of the ONNX standard")
            inner = _PARTS[kind].get(number)
            if inner is not None:
                has_graph |= kind == "model"
                waiting.append((inner, _view(value), depth + 1))
    if not has_graph:
        raise NotSelfContainedError("this is not an ONNX file")


def _view(value: memoryview | int) -> memoryview:
    if isinstance(value, int):
        raise NotSelfContainedError("this is not an ONNX file")
    return value


def _fields(message: memoryview) -> Iterator[tuple[int, int, memoryview | int]]:
    """Number, wire type and value of every field of a protobuf message."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        if tag >> 32:
            raise NotSelfContainedError("this is not an ONNX file")
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            whole, position = _varint(message, position)
            yield number, wire, whole
            continue
        if wire == _BYTES:
            length, position = _varint(message, position)
        elif wire in {_FIXED_32, _FIXED_64}:
            length = 4 if wire == _FIXED_32 else 8
        else:  # groups, which ONNX has none of
            raise NotSelfContainedError("this is not an ONNX file")
        if position + length > len(message):
            raise NotSelfContainedError("this is not an ONNX file")
        yield number, wire, message[position : position + length]
        position += length


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(message):
            break
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
    raise NotSelfContainedError("this is not an ONNX file")
