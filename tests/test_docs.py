"""The generated pages are current, and every relative link of the documents leads somewhere."""

import json
import re
from pathlib import Path

import pytest
import yaml

from bench.tables import beside
from docs import generate
from imprimatur.version import VERSION
from service.domain.table_schema import parse_table_schema
from tests.certificates import made_certificate
from tests.code_blocks import blocks

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += [*sorted((ROOT / "docs").rglob("*.md"))]
PAGES += sorted((ROOT / "bench" / "results").glob("*.md"))


@pytest.mark.parametrize("name", generate.PAGES)
def test_pages_made_from_the_code_say_what_it_says(name):
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == generate.PAGES[name](), "run python -m docs.generate"


def test_the_page_of_peers_says_what_the_result_files_say():
    assert beside.PAGE.read_text(encoding="utf-8") == beside.render(beside.PAGE.read_text(encoding="utf-8")), (
        "run python -m bench.tables.beside"
    )


def test_the_page_of_schemas_shows_one_that_is_accepted():
    shown = [block.text for block in blocks(ROOT / "docs" / "schemas.md")]
    example, spelled, dialect, exclusions, roles, hierarchy, relations, bought = shown
    assert parse_table_schema(json.loads(example)).target == "smoker"
    assert len(parse_table_schema({"fields": json.loads(f"[{spelled}]"), **json.loads(f"{{{dialect}}}")}).fields) == 5
    assert len(parse_table_schema({"fields": json.loads(f"[{bought}]")}).fields) == 2
    categories = {
        "marital_status": ["single", "married", "widowed"],
        "internet": ["none", "slow", "fast"],
        "films": ["yes", "no"],
    }
    fields = [{"name": name, "type": "string", "constraints": {"enum": enum}} for name, enum in categories.items()]
    fields.append({"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}})
    assert len(parse_table_schema({"fields": fields, **json.loads(f"{{{exclusions}}}")}).exclusions) == 3
    categories = {
        "postcode": ["1010", "8010"],
        "city": ["Wien", "Graz"],
        "plan": ["basic", "plus"],
        "network": ["4G", "5G"],
    }
    fields = [{"name": name, "type": "string", "constraints": {"enum": enum}} for name, enum in categories.items()]
    days, money = {"minimum": "2020-01-01", "maximum": "2024-12-31"}, {"minimum": 0, "maximum": 100}
    fields += [{"name": name, "type": "date", "constraints": days} for name in ("admitted", "discharged")]
    fields += [
        {"name": name, "type": "number", "decimals": 2, "constraints": money} for name in ("net", "tax", "gross")
    ]
    fields += [{"name": "stay", "type": "integer", "role": "derived"}]
    fields += [*json.loads(f"[{roles}]"), json.loads(hierarchy)]
    schema = parse_table_schema({"fields": fields, **json.loads(f"{{{relations}}}")})
    assert len(schema.relations) == 6
    assert set(schema.names) - set(schema.modelled.names) == {
        *("stay", "gross", "city"),
        *("row", "patient", "visit", "note", "remark"),
    }


def test_the_page_of_certificates_names_every_field():
    page = (ROOT / "docs" / "certificate.md").read_text(encoding="utf-8")
    named = {name for row in re.findall(r"^\|([^|]*)\|", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert set(made_certificate()) <= named


def test_the_page_of_the_literature_has_every_system_once_and_counts_them():
    page = (ROOT / "docs" / "literature.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:[NFSIG]\d+(?:, )?)+) \|[^|]*\| ([●◐×]) \|", page, re.MULTILINE)
    marks = {name: mark for names, mark in rows for name in names.split(", ")}
    wanted = {"N": 34, "F": 10, "S": 49, "I": 10, "G": 17}
    assert sorted(marks) == sorted(
        f"{letter}{place}" for letter, most in wanted.items() for place in range(1, most + 1)
    )
    assert sum(len(names.split(", ")) for names, _ in rows) == len(marks)
    here, in_part, out = (list(marks.values()).count(mark) for mark in "●◐×")
    assert f"Of {len(marks)} systems, {here} are here, {in_part} in part, and {out} are left out." in page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target, _, heading in re.findall(r"\]\(([^)#]*)(#([^)]*))?\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        to = page.parent / target if target else page
        assert to.exists(), f"{page.name} links to {target}"
        if heading:
            assert heading in anchors(to), f"{page.name} links to {target}#{heading}"


def anchors(page: Path) -> set[str]:
    """What headings are called in links: lower case, hyphens for spaces, no punctuation."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in plain}


def test_the_citation_is_of_this_version_and_licence():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["license"]) == (VERSION, "Apache-2.0")
    cited = [citation, *citation["references"]]
    assert all(each["authors"] and each["title"] for each in cited)
    assert all(re.fullmatch(r"10\.\d{4,9}/\S+", each["doi"]) for each in cited if "doi" in each)


def test_every_make_target_that_a_page_names_exists_and_all_are_explained():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in PAGES[:4]:
        assert set(re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))) <= targets
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"make ([a-z-]+)", makefile.partition("help:")[2].partition("$(VENV)/installed:")[0]))
    assert explained - {"help"} <= set(re.findall(r"`make ([a-z-]+)", contributing))


def test_what_the_page_on_security_quotes_is_said_there():
    said = " ".join((ROOT / "docs" / "privacy.md").read_text(encoding="utf-8").split())
    page = " ".join((ROOT / "SECURITY.md").read_text(encoding="utf-8").split())
    quotes = re.findall(r'"([^"]+)"', page)
    assert len(quotes) >= 4
    assert [quote for quote in quotes if quote not in said] == []
