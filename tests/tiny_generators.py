"""Generators small enough to know their distribution: logits = noise @ weights + bias + table[condition]."""

from __future__ import annotations

import csv
import datetime as dt
import io

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from service.domain.row_config import written_to_config
from service.domain.table_schema import parse_table_schema
from service.samples.table.sampler import TableSampler
from workers.encoding.table import TableDomain

NOISE_DIMENSION = 4

MIXED = {
    "fields": [
        {"name": "plain", "type": "string", "constraints": {"enum": ["a", "b"], "required": True}},
        {
            "name": 'awk,ward "name"',
            "type": "string",
            "constraints": {"enum": ["", " x ", "a,b", 'say "hi"', "two\nlines", "=1+1", "50%", "naïve ☃"]},
            "missingValues": ["NA"],
        },
        {"name": "flag", "type": "boolean"},
        {"name": "rank", "type": "integer", "constraints": {"enum": [3, 1, 2]}},
        {"name": "rate", "type": "number", "constraints": {"enum": [1, 2.5, -0.125]}},
        {"name": "age", "type": "integer", "constraints": {"minimum": 17, "maximum": 60}},
        {"name": "income", "type": "integer", "constraints": {"minimum": -1000, "maximum": 250000, "required": True}},
        {"name": "share", "type": "number", "constraints": {"minimum": -0.3, "maximum": 1}},
        {"name": "day", "type": "date", "constraints": {"minimum": "1960-02-28", "maximum": "2024-02-29"}},
        {
            "name": "at",
            "type": "datetime",
            "constraints": {"minimum": "1969-12-31T23:00:00", "maximum": "2024-01-01T00:00:00"},
        },
    ],
    "missingValues": ["NA", ""],
}


def domain_of(schema, numeric_bins=8):
    return TableDomain.from_schema(parse_table_schema(schema), numeric_bins=numeric_bins)


def tiny_onnx(weights, bias, table=None):
    """ONNX of the linear generator."""
    nodes = [helper.make_node("Gemm", ["noise", "weights", "bias"], ["plain" if table is not None else "logits"])]
    inputs = [helper.make_tensor_value_info("noise", TensorProto.FLOAT, ["batch", weights.shape[0]])]
    constants = {"weights": weights, "bias": bias}
    if table is not None:
        constants["table"] = table
        inputs.append(helper.make_tensor_value_info("condition", TensorProto.INT64, ["batch"]))
        nodes.append(helper.make_node("Gather", ["table", "condition"], ["given"]))
        nodes.append(helper.make_node("Add", ["plain", "given"], ["logits"]))
    graph = helper.make_graph(
        nodes,
        "tiny",
        inputs,
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", weights.shape[1]])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def tiny_config(schema, *, condition=None, frequencies=None, numeric_bins=8):
    parsed = parse_table_schema(schema)
    return {
        "format": 1,
        "kind": "table",
        "noise_dimension": NOISE_DIMENSION,
        "columns": domain_of(schema, numeric_bins).to_config(),
        "exclusions": domain_of(schema, numeric_bins).exclusions_to_config(),
        **written_to_config(parsed),
        "condition": None if condition is None else {"column": condition, "frequencies": list(frequencies)},
        "schema": parsed.as_json(),
        "missing_value": parsed.missing_values[0] if parsed.missing_values else "",
    }


def tiny_files(
    schema=MIXED, *, bias=None, table=None, condition=None, frequencies=None, noise_scale=1.0, numeric_bins=8
):
    """config and ONNX bytes; without a bias, random logits."""
    width = domain_of(schema, numeric_bins).total_width
    random = np.random.default_rng(0)
    weights = noise_scale * random.standard_normal((NOISE_DIMENSION, width))
    bias = random.standard_normal(width) if bias is None else np.asarray(bias)
    config = tiny_config(schema, condition=condition, frequencies=frequencies, numeric_bins=numeric_bins)
    if condition is not None and table is None:
        table = random.standard_normal((len(frequencies), width))
    return config, tiny_onnx(weights, bias, table)


def tiny_sampler(schema=MIXED, **options):
    return TableSampler.from_files(*tiny_files(schema, **options))


def parse_csv(text, schema=MIXED):
    """Header and rows of CSV under the declared types, by the standard library; raises where a cell is not of its type."""
    header, *lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    return header, [tuple(_parse(*cell, schema) for cell in zip(line, schema["fields"], strict=True)) for line in lines]


def _parse(text, field, schema):
    if text in schema["missingValues"] and text not in field.get("constraints", {}).get("enum", []):
        return None
    if field["type"] == "boolean":
        return {"true": True, "false": False}[text]
    kinds = {"string": str, "integer": int, "number": float}
    if field["type"] in kinds:
        return kinds[field["type"]](text)
    kind = {"date": dt.date, "datetime": dt.datetime}[field["type"]]
    assert kind.fromisoformat(text).isoformat() == text
    return text
