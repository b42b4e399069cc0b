"""The generated pages are current, and every relative link of the documents leads somewhere."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_page_of_orders_says_what_the_order_classes_say():
    render = runpy.run_path(str(ROOT / "docs" / "generate.py"))["render"]
    assert (ROOT / "docs" / "orders.md").read_text(encoding="utf-8") == render(), "run python docs/generate.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
