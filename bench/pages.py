"""The pages of bench/results: one file for each bench, in it a section for each setting, of the newest run.

A run takes the place of its section, so that the folder does not grow; earlier runs are in the repository's history. Runs one by
one and pictures go to bench/runs, which is not in the repository: a picture that a page shows is copied to bench/results by hand.
"""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
RUNS = Path(__file__).parent / "runs"
NEWEST = "newest"
"""The section of a bench that has one setting."""
HEAD = (
    "# `python -m bench.{page}`\n\nThe newest run of each setting, and older ones that a page still names. A new run takes the "
    "place of its section;\nother runs are in the repository's history.\n"
)


def today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()


def keep(page: str, text: str, section: str = NEWEST) -> Path:
    """Put today's date and `text`, which says on what hardware it ran, under a heading of a page; what stood there goes."""
    if re.search(r"^##? ", text, re.MULTILINE):
        raise ValueError("headings within a section have three marks or more")
    path = RESULTS / f"{page}.md"
    before = path.read_text(encoding="utf-8") if path.exists() else HEAD.format(page=page)
    head, *sections = re.split(r"^(?=## )", before, flags=re.MULTILINE)
    new = f"## {section}\n\n{today()}; {text.strip()}\n"
    places = [place for place, old in enumerate(sections) if old.splitlines()[0] == f"## {section}"]
    if places:
        sections[places[0]] = new
    else:
        sections.append(new)
    RESULTS.mkdir(exist_ok=True)
    path.write_text("\n".join(part.strip() + "\n" for part in (head, *sections)), encoding="utf-8")
    return path


def run_file(name: str) -> Path:
    """The file in which a run leaves what no page holds: its figures one by one, its pictures."""
    RUNS.mkdir(exist_ok=True)
    return RUNS / name
