"""The ZIP that leaves the house: complete, deterministic, without pickle, and usable by a stranger."""

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import safetensors.torch
import torch
from tiny_generators import MIXED, domain_of, parse_csv

from service.domain.table_schema import parse_table_schema
from service.samples.samplers import sampler_from_bundle
from service.samples.streams import stream_rows
from tests.bundles import build_bundle
from tests.lending import bare_environment, empty_room, lend
from workers.generators.errors import UnusableGeneratorError
from workers.generators.table.bundle import export_onnx
from workers.networks.table import TableGenerator

MEMBERS = ["generator.onnx", "generator.safetensors", "config.json", "MODEL_CARD.md", "sample.py", "certificate.json"]
NOISE_DIMENSION = 16
CERTIFICATE = {
    "unit": "one row",
    "adjacency": "zero-out",
    "trust_model": "central: they",
    "other_releases": {"charged": 2, "pending": 1, "epsilon": 0.5, "with_this": {"epsilon": 4.25}},
    "audit": {"says": "None of 12 attacks."},
    "epsilon": 3.98,
    "delta": 4e-6,
    "schema_source": "declared",
    "code_version": "0.1.0",
}
DOMAIN = domain_of(MIXED)
CONDITION = DOMAIN.index("rank")


def trained(condition_index=CONDITION):
    torch.manual_seed(0)
    generator = TableGenerator(
        DOMAIN.widths, noise_dimension=NOISE_DIMENSION, hidden=(32, 32), condition_index=condition_index
    )
    return generator.eval()


def bundle_of(generator, condition_index=CONDITION, frequencies=(5.0, 3.0, 2.0, -0.5)):
    return build_bundle(
        generator,
        DOMAIN,
        noise_dimension=NOISE_DIMENSION,
        condition_index=condition_index,
        condition_frequencies=frequencies if condition_index is not None else None,
        schema=parse_table_schema(MIXED),
        certificate=CERTIFICATE,
        order={"method": "idpgan", "epsilon": 4},
    )


@pytest.fixture(scope="module")
def bundle():
    return bundle_of(trained())


def member(bundle, name):
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        return archive.read(name)


def test_the_zip_is_complete_and_deterministic(bundle):
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        assert archive.namelist() == MEMBERS
        assert archive.testzip() is None
    assert bundle == bundle_of(trained())


def test_nothing_in_it_is_a_pickle_or_names_this_machine(bundle):
    for name in MEMBERS:
        content = member(bundle, name)
        assert not content.startswith((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"PK"))
        assert str(Path.cwd()).encode() not in content
        assert b"site-packages" not in content


def test_config_and_certificate_say_what_was_given(bundle):
    config = json.loads(member(bundle, "config.json"))
    assert config["columns"] == DOMAIN.to_config() == json.loads(json.dumps(DOMAIN.to_config()))
    assert config["condition"] == {"column": "rank", "frequencies": [0.5, 0.3, 0.2, 0.0]}
    assert parse_table_schema(config["schema"]) == parse_table_schema(MIXED)
    assert config["missing_value"] == "NA"
    assert config["noise_dimension"] == NOISE_DIMENSION
    assert json.loads(member(bundle, "certificate.json")) == CERTIFICATE


@pytest.mark.parametrize("condition_index", [None, CONDITION, 0, DOMAIN.index("flag")])
def test_onnx_and_safetensors_compute_what_torch_computes(condition_index):
    generator = trained(condition_index)
    frequencies = None if condition_index is None else [1.0] * DOMAIN.widths[condition_index]
    bundle = bundle_of(generator, condition_index, frequencies)
    again = trained(condition_index)
    again.load_state_dict(safetensors.torch.load(member(bundle, "generator.safetensors")))
    session = onnxruntime.InferenceSession(member(bundle, "generator.onnx"))
    for rows in (1, 5, 1_000):
        inputs = {"noise": torch.randn(rows, NOISE_DIMENSION)}
        if condition_index is not None:
            inputs["condition"] = torch.randint(DOMAIN.widths[condition_index], (rows,))
        with torch.no_grad():
            expected = again(*inputs.values()).numpy()
        (logits,) = session.run(["logits"], {name: value.numpy() for name, value in inputs.items()})
        assert logits.shape == (rows, DOMAIN.total_width)
        np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-4)


def test_frequencies_that_are_all_noise_become_uniform():
    config = json.loads(member(bundle_of(trained(), frequencies=[-1.0, -2.0, -0.5, 0.0]), "config.json"))
    assert config["condition"]["frequencies"] == [0.25] * 4


def test_the_condition_must_be_a_categorical_column_with_one_frequency_each():
    for index, frequencies in [
        (CONDITION, [1.0, 2.0]),
        (DOMAIN.index("share"), [1.0] * DOMAIN.widths[DOMAIN.index("share")]),
    ]:
        with pytest.raises(ValueError, match="categorical"):
            bundle_of(trained(index), index, frequencies)


def test_a_diverged_generator_is_not_published():
    generator = trained()
    with torch.no_grad():
        generator.output.bias[0] = float("nan")
    with pytest.raises(UnusableGeneratorError, match="diverged"):
        bundle_of(generator)


class DependsOnTheBatch(torch.nn.Module):
    """What the exporter cannot follow: it freezes the size of the batch it saw."""

    def forward(self, noise):
        return noise * float(noise.shape[0])


def test_an_export_that_disagrees_is_not_published():
    with pytest.raises(UnusableGeneratorError, match="does not compute"):
        export_onnx(DependsOnTheBatch(), noise_dimension=3, categories=None)


def test_publishing_leaves_the_generator_as_it_was():
    generator = trained().train()
    before = {name: value.clone() for name, value in generator.state_dict().items()}
    bundle_of(generator)
    assert generator.training
    assert all(torch.equal(value, before[name]) for name, value in generator.state_dict().items())


def test_the_card_tells_the_promise_in_words(bundle):
    card = member(bundle, "MODEL_CARD.md").decode()
    for words in ("one row", "zero-out", "ε = 3.98", "δ = 4e-06", "idpgan", "0.1.0", "declared", "--where rank:VALUE"):
        assert words in card
    for words in (
        "central: they",
        "2 other releases were charged and 1 reserved, together ε = 0.5",
        "ε = 4.25",
        "None of 12 attacks.",
    ):
        assert words in card
    assert "{" not in card.split("## Order")[0]
    bare = build_bundle(
        trained(None),
        DOMAIN,
        noise_dimension=NOISE_DIMENSION,
        condition_index=None,
        condition_frequencies=None,
        schema=parse_table_schema(MIXED),
        certificate={},
        order={},
    )
    assert "see certificate.json" in member(bare, "MODEL_CARD.md").decode()


def test_a_stranger_draws_rows_with_numpy_and_onnxruntime_only(bundle, tmp_path):
    python, packages = empty_room(tmp_path / "room")
    environment = bare_environment()
    lend("numpy", packages)
    lend("onnxruntime", packages)
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        archive.extractall(tmp_path / "generator")

    def sample(*arguments):
        command = [python, "-I", tmp_path / "generator" / "sample.py", *arguments]
        return subprocess.run(command, capture_output=True, check=False, env=environment, cwd=tmp_path)

    for module in ("torch", "polars", "service"):
        assert subprocess.run(
            [python, "-I", "-c", f"import {module}"], capture_output=True, check=False, cwd=tmp_path
        ).returncode
    header, rows = parse_csv(sample("--rows", "1000").stdout.decode())
    assert header == [field["name"] for field in MIXED["fields"]]
    assert len(rows) == 1_000
    seeded = ["--rows", "500", "--seed", "7", "--where", "rank:2", "--where", "flag:true"]
    first = sample(*seeded).stdout.decode()
    assert first == "".join(sampler_from_bundle(bundle).csv(500, seed=7, where={"rank": 2, "flag": True}))
    assert parse_csv(first) == parse_csv(
        b"".join(stream_rows(sampler_from_bundle(bundle), rows=500, seed=7, where={"rank": 2, "flag": True})).decode()
    )
    assert sample(*seeded, "-o", "rows.csv").returncode == 0
    assert (tmp_path / "rows.csv").read_bytes().decode() == first
    lines = sample("--rows", "20", "--format", "jsonl").stdout.decode().splitlines()
    assert [list(json.loads(line)) for line in lines] == [header] * 20
    wrong = sample("--rows", "20", "--where", "nobody:1")
    assert wrong.returncode == 2
    assert b"nobody" in wrong.stderr
    assert b"Traceback" not in wrong.stderr
    assert sys.prefix not in first


def test_an_export_that_names_other_files_is_not_published(monkeypatch):
    real = torch.onnx.export

    def with_external_data(model, arguments, path, **options):
        import onnx

        real(model, arguments, path, **options)
        onnx.save(onnx.load(path), path, save_as_external_data=True, location="weights", size_threshold=0)

    monkeypatch.setattr(torch.onnx, "export", with_external_data)
    with pytest.raises(UnusableGeneratorError, match="external data"):
        export_onnx(trained(None), noise_dimension=NOISE_DIMENSION, categories=None)
