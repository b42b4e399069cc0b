"""The folder of results stays small, and a run takes the place of its section alone."""

import re
from pathlib import Path

import pytest

from bench import pages

ROOT = Path(__file__).parents[1]
MOST_FILES = 60
SHOWN = {".png", ".svg"}


def test_the_folder_of_results_stays_small():
    assert len([path for path in pages.RESULTS.rglob("*") if path.is_file()]) <= MOST_FILES


def test_every_picture_is_shown_and_every_result_that_code_names_is_there():
    """What documents link to is checked with all their links (tests/test_docs.py)."""
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    linked = "".join(path.read_text(encoding="utf-8") for path in documents)
    assert [path.name for path in pages.RESULTS.iterdir() if path.suffix in SHOWN and path.name not in linked] == []
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "bench").rglob("*.py"))
    named = set(re.findall(r"bench/results/([\w.-]+\.(?:md|csv|json))", code))
    assert len(named) > 10
    assert {name for name in named if not (pages.RESULTS / name).exists()} == set()


def test_a_run_takes_the_place_of_its_section_and_of_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    monkeypatch.setattr(pages, "today", lambda: "2026-01-02")
    for section, text in (("cpu", "2 cores\n\n### Methods\n\n| a |"), ("cpu-2026-01-01", "old"), ("cuda", "a GPU")):
        pages.keep("fit", text, section)
    before = (tmp_path / "fit.md").read_text(encoding="utf-8")
    monkeypatch.setattr(pages, "today", lambda: "2026-01-03")
    pages.keep("fit", "4 cores\n\n| b |\n", "cpu")
    after = (tmp_path / "fit.md").read_text(encoding="utf-8")
    old, new = "2026-01-02; 2 cores\n\n### Methods\n\n| a |\n", "2026-01-03; 4 cores\n\n| b |\n"
    assert old in before
    assert after == before.replace(old, new)
    assert re.findall(r"^## (.*)$", after, re.MULTILINE) == ["cpu", "cpu-2026-01-01", "cuda"]
    assert [path.name for path in tmp_path.iterdir()] == ["fit.md"]


@pytest.mark.parametrize("text", ["# Fit", "2 cores\n## cuda\n| a |"])
def test_a_text_that_would_end_its_section_is_refused(text, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    with pytest.raises(ValueError, match="three marks"):
        pages.keep("fit", text, "cpu")
