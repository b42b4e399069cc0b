"""docs/tutorial.md, step 7c: the web page, walked as it is written there, and every label that it names."""

from __future__ import annotations

import csv
import html
import io
import json
import random
import re
import runpy
import time

import httpx
import pytest

from tests.code_blocks import ROOT
from tests.service.pages.test_upload_walk import once_read, values_of

PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## 7c.")[2].partition("\n## ")[0]
SCHEMA = (ROOT / "examples" / "clinic_visits.schema.json").read_text(encoding="utf-8")
PATIENCE_SECONDS = 300


def labels():
    """What the section prints in bold: what stands on the page."""
    return re.findall(r"\*\*(.+?)\*\*", SECTION)


def test_every_label_that_the_tutorial_names_is_on_the_page():
    templates = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "service/pages/templates").glob("*.html"))
    texts = set(re.findall(r'_\("((?:[^"\\]|\\.)*)"', templates))
    assert len(labels()) > 12
    assert [label for label in labels() if label not in texts] == []


def mended_rows(folder):
    """The tutorial's table after its step 4, with other made-up rows."""
    path = folder / "clinic_visits.csv"
    runpy.run_path(str(ROOT / "examples" / "clinic_visits.py"))["write"](path, random.Random().getrandbits(64))
    return re.sub(r";(20\d\d)-(\d\d)-(\d\d);", r";\3.\2.\1;", path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_from_the_patient_table_to_rows_by_the_page(stack, new_tenant, tmp_path):
    with httpx.Client(base_url=stack.url, follow_redirects=True, timeout=600) as browser:
        home = browser.post("/sign-in", data={"key": new_tenant()})
        token = re.search(r'name="csrf-token" content="(\w+)"', home.text)[1]
        file = {"file": ("visits.csv", mended_rows(tmp_path).encode())}
        declare = once_read(browser, browser.post("/datasets/new", data={"csrf_token": token}, files=file))
        assert "cells are e-mail addresses" in html.unescape(declare.text)
        here = declare.url.path
        pasted = {**values_of(declare.text), "json": SCHEMA, "step": "json"}
        columns = browser.post(here, data=pasted)
        assert columns.status_code == 200, columns.text
        said = {"several": "yes", "column": "patient_id", "most": "2", "declared": "on", "step": "continue"}
        budget = browser.post(here, data={**values_of(columns.text), **said})
        assert budget.url.path.endswith("/budget"), budget.text
        done = browser.post(budget.url.path, data={**values_of(budget.text), "epsilon": "3", "step": "publish"})
        assert "Published: visits" in done.text, done.text
        assert "cells are read as missing" in done.text
        order = re.search(r'href="(/datasets/[0-9a-f-]+/order)"', done.text)[1]
        confirm = browser.post(order, data={"csrf_token": token, "method": "auto", "epsilon": "2", "step": "confirm"})
        hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', confirm.text))
        release = browser.post(order.replace("/order", "/releases"), data=hidden).url.path
        last = time.monotonic() + PATIENCE_SECONDS
        while "state-published" not in (page := browser.get(release).text):
            assert time.monotonic() < last, page
            time.sleep(0.5)
        sample = browser.get(f"{release}/download", params={"rows": "200", "format": "csv"})
        drawn = list(csv.DictReader(io.StringIO(sample.text)))
        assert len(drawn) == 200
        left_out = {"patient_id", "email", "note"}
        assert set(drawn[0]) == {field["name"] for field in json.loads(SCHEMA)["fields"]} - left_out
        assert all((row["department"] == "children") == (int(row["age"]) < 18) for row in drawn)
        assert browser.get(f"{release}/explanation.html").status_code == 200
