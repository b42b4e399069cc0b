"""`imprimatur certificate`: signed JSON, sentences, and an entry of the registry; from a service or from a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import yaml

from imprimatur import Client
from imprimatur.cli.certificates import owner_of
from imprimatur.cli.output import Exit, Failure
from imprimatur.registry import TO_BE_FILLED_IN, Entry
from imprimatur.verify.signatures import verify_signature
from tests.certificates import made_certificate, of_format_1

TYPED = (
    *("--curator", "City of X", "--intended-use", "Teaching", "--region", "Region 5"),
    *("--sector", "Government", "--justification", "Agreed with the works council."),
)


@pytest.fixture
def imprimatur(tmp_path):
    """Runs the command; keyword arguments are environment variables."""

    def run(*arguments, **environment):
        return subprocess.run(
            [sys.executable, "-m", "imprimatur.cli", "certificate", *map(str, arguments)],
            env={**os.environ, "NO_COLOR": "1", "IMPRIMATUR_URL": "", "IMPRIMATUR_API_KEY": "", **environment},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    return run


@pytest.fixture
def certificate_file(tmp_path):
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(made_certificate()))
    return path


def test_of_a_release_as_the_service_signed_it(imprimatur, stack, published, tmp_path):
    whose = {"IMPRIMATUR_URL": stack.url, "IMPRIMATUR_API_KEY": published.api_key}
    with Client(stack.url, published.api_key) as client:
        certificate = client.certificate(published.release_id)
        client.save_generator(published.release_id, tmp_path / "generator.zip")
    assert json.loads(imprimatur(published.release_id, **whose).stdout) == certificate
    assert imprimatur(published.release_id, "-o", "new/certificate.json", **whose).returncode == 0
    assert json.loads((tmp_path / "new" / "certificate.json").read_text()) == certificate
    done = imprimatur(published.release_id, "--format", "registry", *TYPED, **whose)
    assert (done.returncode, done.stderr) == (0, "")
    entry = Entry.model_validate(yaml.safe_load(done.stdout))
    assert entry.deployment.basic.intended_use == "Teaching"
    assert entry.deployment.privacy_loss.privacy_parameters.epsilon == certificate["epsilon"] == 2.0
    of_zip = imprimatur("generator.zip", "--format", "registry", *TYPED)
    assert of_zip.stdout == done.stdout


def test_in_sentences(imprimatur, certificate_file):
    certificate = json.loads(certificate_file.read_text())
    done = imprimatur(certificate_file, "--format", "text")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1] == "Promise: (ε, δ) = (2, 2e-07)-differential privacy"
    for sentence in (*certificate["not_protected"], certificate["trust_model"], certificate["audit"]["says"]):
        assert sum(sentence in line for line in lines) == 1
    assert sum(line.startswith("Mechanism (") for line in lines) == len(certificate["mechanisms"])


def test_what_only_people_know_must_be_typed(imprimatur, certificate_file, tmp_path):
    done = imprimatur(certificate_file, "--format", "registry", "--curator", "City of X", "-o", "entry.yaml")
    assert done.returncode == 2
    assert "--intended-use, --region, --sector, --justification" in " ".join(done.stderr.split())
    assert not (tmp_path / "entry.yaml").exists()


def test_nothing_is_made_up_for_the_curator():
    typed = {"curator": ("City of X",), "intended_use": None, "region": "", "sector": "Energy", "justification": "j"}
    with pytest.raises(Failure, match="--intended-use, --region: ") as refused:
        owner_of(typed, None, (), allow_missing=False)
    assert (refused.value.exit_code, refused.value.values["missing"]) == (Exit.USAGE, ["intended_use", "region"])
    owner = owner_of(typed, None, (), allow_missing=True)
    assert (owner.intended_use, owner.region, owner.sector) == (TO_BE_FILLED_IN, TO_BE_FILLED_IN, "Energy")


def test_missing_fields_are_named_where_that_is_allowed(imprimatur, certificate_file, tmp_path):
    some = ("--curator", "City of X", "--region", "Region 5", "--allow-missing", "-o", "entry.yaml")
    done = imprimatur(certificate_file, "--format", "registry", *some)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "warning: left to be filled in: --intended-use, --sector, --justification\n"
    entry = Entry.model_validate(yaml.safe_load((tmp_path / "entry.yaml").read_text(encoding="utf-8")))
    assert entry.deployment.basic.intended_use == entry.deployment.implementation.justification == TO_BE_FILLED_IN
    assert entry.deployment.basic.data_product_region == "Region 5"
    assert entry.status == "Draft"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (("--format", "text", "--curator", "X"), 2, "--curator"),
        (("--format", "registry", *TYPED, "--sector", "Transport"), 5, "Technology, Healthcare"),
    ],
)
def test_what_cannot_be_meant_is_refused(imprimatur, certificate_file, arguments, exit_code, words):
    done = imprimatur(certificate_file, *arguments)
    assert done.returncode == exit_code
    assert words in done.stderr


def test_a_file_that_is_no_certificate_is_refused(imprimatur, tmp_path):
    (tmp_path / "other.json").write_text('{"epsilon": 1}')
    done = imprimatur("other.json", "--format", "text")
    assert done.returncode == 5
    assert "is not a certificate" in done.stderr


def test_a_certificate_of_format_1_still_verifies_and_is_shown(imprimatur, tmp_path):
    certificate = of_format_1(made_certificate())
    (tmp_path / "old.json").write_text(json.dumps(certificate))
    signed = {k: v for k, v in certificate.items() if k not in {"signature", "public_key"}}
    assert verify_signature(signed, certificate["signature"], certificate["public_key"])
    assert json.loads(imprimatur("old.json").stdout) == certificate
    text = imprimatur("old.json", "--format", "text")
    assert text.returncode == 0, text.stderr
    assert "Mechanism" not in text.stdout
    done = imprimatur("old.json", "--format", "registry", *TYPED)
    assert done.returncode == 0, done.stderr
    assert Entry.model_validate(yaml.safe_load(done.stdout)).tier == 2
