"""The certificate says all that is asked of a claim: every mechanism with its original parameters, what else was spent, who audited it."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from bench.audit.summary import summarise, write_summary
from imprimatur.verify.signatures import UNSIGNED, verify_signature
from imprimatur.wording import run_in_words
from service.ledger.service import OtherReleases
from service.methods.catalogue import CATALOGUE
from service.privacy.accounting import renyi_divergence
from service.privacy.events import SAMPLED_STEPS as STEPS
from service.privacy.events import (
    DrawnPartEvent,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
    RepeatAndSelectEvent,
    SampledStepEvent,
    events_from_json,
)
from service.privacy.filters import NANO
from tests.certificates import BUDGET, IDPGAN, VISITS, made_certificate
from workers import audited
from workers.audited import AUDIT, audit_statement, code_digest
from workers.certificate import FORMAT, accounting_of, mechanisms, noise_of

MARGINALS = {"method": "marginals", "epsilon": 1.0, "condition_on": "colour", "pairs": "chosen"}
MIXTURE = {"method": "mixture", "epsilon": 1.0, "cells": 8}
ORDERS = (
    IDPGAN,
    MARGINALS | {"pair_groups": "counted", "tree_precision_share": 0.02},
    MIXTURE,
    IDPGAN | {"warm_start": {"kind": "tables", "pairs": "chosen"}, "noise_decay": {"kind": "constant"}},
)


def runs_of(certificate):
    return [(each["purpose"], run) for each in certificate["mechanisms"] for run in each["runs"]]


def in_full(certificate):
    return [each for event in events_from_json(certificate["events"]) for each in event.alike]


@pytest.mark.parametrize("order", ORDERS, ids=["steps", "tables", "images", "tables, then steps"])
def test_every_event_is_there_with_its_original_parameters(order):
    certificate = made_certificate(order, image=order is MIXTURE)
    bought, told = {}, {}
    for event in in_full(certificate):
        purpose = STEPS if isinstance(event, SampledStepEvent) else event.purpose
        key = (purpose, event.sampling_probability, event.joint_noise_multiplier)
        bought[key] = bought.get(key, 0) + event.count
    for purpose, run in runs_of(certificate):
        key = (purpose, run["sampling_probability"], run["noise_multiplier"])
        assert key not in told
        told[key] = run["count"]
    assert told == bought
    parts = [run for purpose, run in runs_of(certificate) if purpose == STEPS]
    priced = [event for event in in_full(certificate) if isinstance(event, SampledStepEvent)]
    assert {(run["gradient_noise_multiplier"], run["histogram_noise_multiplier"]) for run in parts} == {
        (event.gradient_noise_multiplier, event.histogram_noise_multiplier) for event in priced
    }
    for each in certificate["mechanisms"]:
        assert each["sensitivity"]["norm"] == "L2"
        assert each["sensitivity"]["of_one_unit"]
        assert each["mechanism"].startswith("Poisson-sampled" if each["purpose"] == STEPS else "discrete Gaussian")


@pytest.mark.parametrize("order", ORDERS, ids=["steps", "tables", "images", "tables, then steps"])
def test_what_the_mechanisms_cost_adds_up_to_what_was_paid(order):
    certificate = made_certificate(order, image=order is MIXTURE)
    total = sum(run["renyi_divergence"] for _, run in runs_of(certificate))
    assert total == pytest.approx(certificate["renyi"]["divergence"], rel=1e-9)
    assert total / BUDGET.renyi_capacity * NANO <= certificate["ledger_entry"]["shares"]["renyi"]


def test_every_kind_of_event_has_words_and_its_own_parameters():
    events = (
        GaussianEvent("x", 3.0),
        LaplaceEvent("x", 10.0, 2),
        PureEvent("x", 0.25),
        LaplaceEvent("x", 10.0),
        ExponentialEvent("x", 0.5),
        ParallelEvent("x", ((PureEvent("y", 0.1),), (GaussianEvent("z", 4.0), LaplaceEvent("z", 2.0)))),
        RepeatAndSelectEvent("x", (GaussianEvent("y", 9.0),), 4.0, 1.0),
    )
    told = mechanisms(events, CATALOGUE["marginals"].card, most_rows=1, renyi_order=8)
    assert [len(each["runs"]) for each in told] == [1] * 6
    assert len({each["mechanism"] for each in told}) == 6
    assert {each["sensitivity"]["norm"] for each in told} >= {"L1", "L2"}
    runs = [each["runs"][0] for each in told]
    assert runs[1] == {
        "count": 3,
        "sampling_probability": 1.0,
        "noise_scale": 10.0,
        "renyi_divergence": runs[1]["renyi_divergence"],
    }
    assert sum(run["renyi_divergence"] for run in runs) == pytest.approx(renyi_divergence(events, 8), rel=1e-12)
    assert [run_in_words(run, digits=4) for run in runs] == [
        "1 × noise multiplier 3, sampling probability 1",
        "3 × noise scale 10, sampling probability 1",
        "1 × ε 0.25, sampling probability 1",
        "1 × ε 0.5, sampling probability 1",
        (
            "1 × sampling probability 1, [1 × ε 0.1, sampling probability 1], "
            "[1 × noise multiplier 4, sampling probability 1; 1 × noise scale 2, sampling probability 1]"
        ),
        "1 × mean number of runs 4, shape 1, sampling probability 1, [1 × noise multiplier 9, sampling probability 1]",
    ]
    json.dumps(told, allow_nan=False)


def test_noise_is_called_gaussian_only_where_all_of_it_is():
    gaussian, step = GaussianEvent("any", 1.0), SampledStepEvent(0.1, 1.0, None, 3)
    assert noise_of((gaussian, step)).startswith("discrete Gaussian")
    for other in (LaplaceEvent("any", 1.0), ExponentialEvent("any", 0.5), PureEvent("any", 0.5)):
        assert "Gaussian" not in noise_of((gaussian, other))


def test_a_list_without_a_loss_distribution_does_not_claim_one():
    drawn, counts = DrawnPartEvent(0.1, 1.0, 3), GaussianEvent("any", 5.0)
    assert "the privacy-loss distribution of the whole list gives pld" in accounting_of((counts,))
    for without in ((counts, drawn), (RepeatAndSelectEvent("x", (counts,), 4.0, 1.0),)):
        assert "has no privacy-loss distribution" in accounting_of(without)


def test_every_purpose_has_words():
    named = {purpose for method in CATALOGUE.values() for purpose in method.card.releases}
    assert {"marginals", "leanings", "label_counts", "sampled_steps"} <= named


def test_the_unit_and_its_bound_are_there_for_programs():
    bounds = [
        made_certificate()["contribution_bound"],
        made_certificate(MIXTURE, image=True)["contribution_bound"],
        made_certificate(privacy_unit=VISITS)["contribution_bound"],
    ]
    assert bounds == [
        {"unit": "row", "column": None, "max_rows": 1},
        {"unit": "image", "column": None, "max_rows": 1},
        {"unit": "value of a column", "column": "person", "max_rows": 3},
    ]
    tables = made_certificate(MARGINALS, privacy_unit=VISITS)["mechanisms"]
    assert {each["sensitivity"]["of_one_unit"] for each in tables} == {"3 in each marginal", "3 in each score"}


def test_format_2_is_signed_and_is_json():
    certificate = made_certificate()
    assert certificate["format"] == FORMAT == 3
    signed = {k: v for k, v in certificate.items() if k not in UNSIGNED}
    assert verify_signature(json.loads(json.dumps(signed)), certificate["signature"], certificate["public_key"])
    assert certificate["trust_model"].startswith("central: ")
    assert certificate["neighbouring_relation"]["name"] == "zero-out"
    assert len(certificate["not_protected"]) >= 5


def test_other_releases_are_told_by_the_accounts_of_the_ledger():
    others = OtherReleases(charged=2, pending=1, simple=NANO // 2, renyi=NANO // 10, entries=9)
    certificate = made_certificate(others=others)
    said, paid = certificate["other_releases"], certificate["ledger_entry"]["shares"]
    assert (said["charged"], said["pending"], said["up_to_entry"]) == (2, 1, 9)
    assert said["shares"] == {"simple": NANO // 2, "renyi": NANO // 10}
    assert 0.0 < said["epsilon"] <= 0.5 * BUDGET.epsilon
    assert said["with_this"]["shares"] == {
        "simple": NANO // 2 + paid["simple"],
        "renyi": NANO // 10 + paid["renyi"],
    }
    assert said["epsilon"] < said["with_this"]["epsilon"] <= BUDGET.epsilon
    alone = made_certificate()["other_releases"]
    assert (alone["charged"], alone["epsilon"]) == (0, 0.0)
    assert alone["with_this"]["epsilon"] == pytest.approx(2.0)


# -- the audit

AUDITED = {
    "date": "2026-11-23",
    "code_version": "0.1.0",
    "code_digest": "a" * 64,
    "confidence": 0.95,
    "delta": 1e-5,
    "attacks": [
        {"name": "one", "epsilon_claimed": 4.0, "epsilon_lower": 3.0, "ratio": 0.75},
        {"name": "two", "epsilon_claimed": 8.0, "epsilon_lower": 7.2, "ratio": 0.9},
    ],
}


def test_an_audit_of_this_very_code_says_so():
    said = audit_statement(AUDITED, running_digest="a" * 64)
    assert (said["same_code"], said["holds"], said["attacks"]) == (True, True, 2)
    assert (said["largest_ratio"], said["largest_ratio_of"]) == (0.9, "two")
    assert "not" not in said["says"].split()


@pytest.mark.parametrize("digest", ["b" * 64, None])
def test_an_audit_of_other_code_says_so(digest):
    said = audit_statement({**AUDITED, "code_digest": digest}, running_digest="a" * 64)
    assert said["same_code"] is False
    assert "not byte for byte" in said["says"]


def test_an_attack_that_proved_too_much_is_not_passed_over():
    beaten = [*AUDITED["attacks"], {"name": "three", "epsilon_claimed": 1.0, "epsilon_lower": 1.1, "ratio": 1.1}]
    said = audit_statement({**AUDITED, "attacks": beaten}, running_digest="a" * 64)
    assert said["holds"] is False
    assert said["says"].startswith("An attack proved more than is claimed")


def test_the_summary_in_the_package_is_one_and_holds():
    assert AUDIT["holds"]
    assert AUDIT["attacks"] >= 10
    assert 0.8 <= AUDIT["largest_ratio"] <= 1.0
    assert made_certificate()["audit"] == AUDIT


def test_the_digest_covers_every_source_of_the_mechanisms(tmp_path, monkeypatch):
    here = Path(audited.__file__).parent
    for folder in ("mechanism", "numerics"):
        shutil.copytree(here / folder, tmp_path / folder)
    monkeypatch.setattr(audited, "__file__", str(tmp_path / "audited.py"))
    before = code_digest()
    sources = [path for path in tmp_path.rglob("*") if path.suffix in audited.SOURCES]
    assert any(len(path.relative_to(tmp_path).parts) > 2 for path in sources)
    for path in sources:
        path.write_bytes(path.read_bytes() + b"\n")
        after = code_digest()
        assert after != before
        before = after


def test_an_audit_writes_the_summary_of_the_code_it_attacked(tmp_path):
    @dataclasses.dataclass
    class Finding:
        name: str = "plain"
        epsilon_claimed: float = 4.0
        epsilon_lower: float = 3.0

    document = {"date": "2026-11-27", "delta": 1e-5, "ours": [dataclasses.asdict(Finding())], "paper_acts": []}
    write_summary(document, tmp_path / "summary.json")
    written = json.loads((tmp_path / "summary.json").read_text())
    assert written == summarise(document, digest=code_digest())
    assert audit_statement(written, running_digest=code_digest())["same_code"]
