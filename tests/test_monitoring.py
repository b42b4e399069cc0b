"""Alerts, dashboard and page name metrics and labels that /metrics really has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from fastapi.testclient import TestClient

from service.http.app import create_app

ROOT = Path(__file__).parents[1]
DASHBOARD = json.loads((ROOT / "docker" / "grafana.json").read_text(encoding="utf-8"))
ALERTS = yaml.safe_load((ROOT / "docker" / "alerts.yml").read_text(encoding="utf-8"))
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
EXPRESSIONS += [rule["expr"] for group in ALERTS["groups"] for rule in group["rules"]]
OWN = re.compile(r"\bimprimatur_\w+")


@pytest.fixture
def shown(settings, database, tmp_path):
    """The text of /metrics of a service that has answered, refused, and heard its relay and its worker."""
    from service.platform.broker import beat
    from service.platform.database import transaction
    from service.upkeep.installation import install

    install(settings, tmp_path / "admin.key")
    with transaction(settings) as session:
        for part in ("relay", "worker"):
            beat(session, part)
    with TestClient(create_app(settings.model_copy(update={"database_url": database.api_url}))) as http:
        http.get("/v1/datasets", headers={"Authorization": "Bearer imp_no"})
        yield http.get("/metrics").text


def test_what_is_named_is_there(shown):
    there = set(re.findall(r"^(imprimatur_\w+)", shown, re.MULTILINE))
    named = {name for expression in EXPRESSIONS for name in OWN.findall(expression)}
    assert named - there <= {
        "imprimatur_release_seconds_last_hour"
    }  # nothing has ended yet; tests/service/http/test_operations.py
    assert len(named) >= 12
    series = {re.sub(r"\s.*$", "", line) for line in shown.splitlines() if not line.startswith("#")}
    for expression in EXPRESSIONS:
        for name, labels in re.findall(r"\b(imprimatur_\w+)\{([^}]*)\}", expression):
            for label, value in re.findall(r'(\w+)="([^"]*)"', labels):
                assert any(one.startswith(f"{name}{{") and f'{label}="{value}"' in one for one in series) or (
                    name == "imprimatur_release_seconds_last_hour"  # nothing has ended yet
                ), (name, label, value)


def test_the_page_explains_every_metric(shown):
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    for name in set(re.findall(r"^(imprimatur_\w+)", shown, re.MULTILINE)):
        base = re.sub(r"_(created|bucket|count|sum)$", "", name)
        short = "_" + name.rpartition("_")[2]
        assert base in page or f"{base}_total" in page or f"`{short}`" in page, name


def test_every_alert_says_what_it_is():
    for group in ALERTS["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"]["summary"].endswith(".")
            assert rule["labels"]["severity"] in {"page", "ticket"}


def test_the_example_reads_the_alerts():
    read = yaml.safe_load((ROOT / "docker" / "prometheus.yml").read_text(encoding="utf-8"))
    assert read["rule_files"] == ["alerts.yml"]
    assert read["scrape_configs"][0]["job_name"] == "imprimatur"  # as the alert on `up` says
