"""From a file to downloaded synthetic rows, by pages alone and by real processes."""

import csv
import io
import re
import time

import httpx
import pytest

from tests.service.pages.test_upload_walk import PATIENCE_SECONDS, all_public, once_read, values_of

pytestmark = pytest.mark.slow


def test_from_a_file_to_downloaded_rows_through_pages_alone(stack, new_tenant):
    rows = "".join(f"{n % 90},{('Bonn', 'Köln', 'Trier')[n % 3]},{'yes' if n % 4 else 'no'}\n" for n in range(300))
    with httpx.Client(base_url=stack.url, follow_redirects=True, timeout=600) as browser:
        home = browser.post("/sign-in", data={"key": new_tenant()})
        assert "Publish your first table" in home.text
        token = re.search(r'name="csrf-token" content="(\w+)"', home.text)[1]
        file = {"file": ("visits 2025.csv", f"age,town,returned\n{rows}".encode())}
        declare = browser.post("/datasets/new", data={"csrf_token": token}, files=file)
        declare = once_read(browser, declare)
        assert declare.url.path.endswith("/declare"), declare.text
        typed = {"c0.low": "0", "c0.high": "120", "several": "no", "declared": "on", "step": "continue"}
        budget = browser.post(declare.url.path, data={**values_of(declare.text), **all_public(declare.text), **typed})
        assert budget.url.path.endswith("/budget"), budget.text
        done = browser.post(budget.url.path, data={**values_of(budget.text), "epsilon": "4", "step": "publish"})
        assert "Published: visits 2025" in done.text, done.text
        order = re.search(r'href="(/datasets/[0-9a-f-]+/order)"', done.text)[1]
        filled = {"csrf_token": token, "method": "marginals", "epsilon": "2", "step": "confirm"}
        confirm = browser.post(order, data=filled)
        hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', confirm.text))
        release = browser.post(order.replace("/order", "/releases"), data=hidden).url.path
        last = time.monotonic() + PATIENCE_SECONDS
        while "state-published" not in (page := browser.get(release).text):
            assert time.monotonic() < last, page
            time.sleep(0.5)
        sample = browser.get(f"{release}/download", params={"rows": "50", "format": "csv"})
        drawn = list(csv.DictReader(io.StringIO(sample.text)))
        assert len(drawn) == 50
        assert {row["town"] for row in drawn} <= {"Bonn", "Köln", "Trier"}
        assert all(0 <= int(row["age"]) <= 120 for row in drawn)
