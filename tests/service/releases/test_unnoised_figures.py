"""No figure of the owner's report is in anything that an analyst can fetch, and neighbouring tables look the same from there."""

import io
import json
import re
import time
import zipfile

import httpx
import pytest

from imprimatur import Client
from service.platform.storage import Storage
from tests.service.releases.test_owner_reports import once_there
from tests.workers.reports.test_owner_figures import SCHEMA, real_frame

ORDER = {
    "method": "marginals",
    "epsilon": 1,
    "steps": 20,
    "owner_report": True,
    "report": {"share": 0.3, "held_out": 0.25},
}
LEAST_DIGITS = 8
"""A shorter number may be anywhere by chance."""
ROWS = 307
"""A prime: a noisy share of a part of the rows is then no share of all of them, or of another part, by chance."""
LAST_ROWS = ("m,99,100.0,true", "f,,,false", "f,50,50.0,true", "m,1,2.5,false")
"""By which tables differ; the third and the fourth only where a figure may have been met by chance twice."""


def figures_in(document, name=""):
    """(Figure, its name) of every long number, as JSON writes it, and to six digits."""
    if isinstance(document, dict | list):
        for key, each in document.items() if isinstance(document, dict) else enumerate(document):
            yield from figures_in(each, f"{name}.{key}")
    elif isinstance(document, float) and len(re.sub(r"\D", "", repr(document))) >= LEAST_DIGITS:
        yield repr(document), name
        yield f"{document:.6f}", name


def shapes_in(document, name):
    """Where something stands, and of which type; not what it is."""
    if isinstance(document, dict | list):
        pairs = document.items() if isinstance(document, dict) else ((0, each) for each in document)
        for key, each in pairs:
            yield from shapes_in(each, f"{name}.{key}")
    else:
        yield f"{name}: {type(document).__name__}"


def everything(stack, analyst, release):
    """Name -> text of all that an analyst can fetch of a release and its dataset."""
    http = httpx.Client(base_url=stack.url, headers={"Authorization": f"Bearer {analyst}"}, timeout=600)
    here, dataset = f"/v1/releases/{release.id}", f"/v1/datasets/{release.dataset_id}"
    paths = [here, f"{here}/certificate", f"{here}/report", f"{here}/report?format=html", f"{here}/events"]
    paths += [
        f"{here}/owner-report",
        f"{here}/owner-report?format=html",
        f"/v1/releases?dataset_id={release.dataset_id}",
    ]
    paths += [dataset, f"{dataset}/budget", f"{dataset}/ledger", "/metrics", "/v1/audit"]
    found = {path.replace(release.id, "ID").replace(release.dataset_id, "DATASET"): http.get(path) for path in paths}
    texts = {path: f"{reply.status_code} {reply.text}" for path, reply in found.items()}
    texts["quote"] = http.post(f"{dataset}/quotes", json=ORDER).text
    archive = zipfile.ZipFile(io.BytesIO(http.get(f"{here}/generator").content))
    texts |= {f"zip {name}": archive.read(name).decode("latin-1") for name in archive.namelist()}
    return texts


def shape_of(texts):
    """What of it must be the same for neighbours."""
    shapes = set(texts)
    for name in ("/v1/releases/ID", "/v1/releases/ID/certificate", "/v1/releases/ID/report", "zip report.json"):
        text = texts[name]
        shapes |= set(shapes_in(json.loads(text[text.index("{") :]), name))
    return shapes | {f"{name} {text[:3]}" for name, text in texts.items() if name.startswith("/v1")}


def stay(stack, key, file):
    """One owner's table and release: what an analyst can fetch, and the owner's report."""
    client = Client(stack.url, key)
    release = client.create_dataset(file, SCHEMA, epsilon=4).order(ORDER).wait()
    report = once_there(release)
    assert Storage.from_url(stack.settings.storage_url).exists(f"owner-reports/{release.dataset_id}/{release.id}")
    return everything(stack, client.create_key("analyst", "analyst")["key"], release), report


@pytest.mark.slow
def test_what_analysts_can_fetch_has_no_figure_without_noise(stack, new_tenant, tmp_path):
    """Tables that differ in their last row; tenants that do not know each other may have all of them."""
    header, *rows = real_frame(seed=time.time_ns() % 2**32, rows=ROWS).write_csv().splitlines()
    seen, found = [], []
    for last_row in LAST_ROWS:
        file = tmp_path / "rows.csv"
        file.write_text("\n".join([header, *rows[:-1], last_row]) + "\n")
        texts, report = stay(stack, new_tenant(), file)
        figures = dict(figures_in(report))
        found.append(set())
        assert len(figures) > 100
        for attack in ("likelihood", "exposure", "nearest"):
            assert any(name.startswith(f".attacks.{attack}") for name in figures.values()), attack
        for name, text in texts.items():
            found[-1] |= {(name, figures[each]) for each in figures if len(each) > LEAST_DIGITS + 2 and each in text}
            assert "not_private" not in text, name
        assert texts["/v1/releases/ID/owner-report"].startswith("403")
        seen.append(shape_of(texts))
        assert seen[-1] == seen[0]
        if len(seen) > 1 and not set.intersection(*found):
            break
    # A noisy share may be a figure of the report by chance, and seldom the same one twice. What is told is told of every table.
    assert not set.intersection(*found)
