"""docs/security.md says of every requirement of OWASP ASVS 5.0.0, levels 1 and 2, whether it is met; and what it says of the page at /."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from service.http.security_headers import BASE
from service.pages.policy import PAGE_HEADERS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
SCRIPTS = ROOT / "service" / "pages" / "assets"
VERDICTS = ("met", "not applicable", "open")
IDS = re.findall(r"V[\d.]+", (Path(__file__).parent / "asvs_5_0_0_level_2.txt").read_text(encoding="ascii"))
"""As the standard numbers them."""


def rows() -> list[list[str]]:
    """Requirement, level, short form, verdict, reason."""
    found = re.findall(r"^\| (V\d+\.\d+\.\d+) \|(.*)\|$", PAGE, re.MULTILINE)
    return [[number, *(cell.strip() for cell in rest.split("|"))] for number, rest in found]


def test_every_requirement_has_its_line_in_the_order_of_the_standard() -> None:
    assert len(IDS) == len(set(IDS)) == 253
    assert [row[0] for row in rows()] == IDS


def test_every_line_has_a_verdict_and_a_reason() -> None:
    for number, level, short, verdict, *reason in rows():
        assert level in {"1", "2"}, number
        assert 3 <= len(short.split()) <= 10, f"{number}: {short}"
        assert verdict in VERDICTS, number
        assert len(reason) == 1, number
        assert len(reason[0]) > len("no LDAP") - 1, number
        assert verdict != "open" or "Meanwhile: " in reason[0], f"{number} says nothing to operators"


def test_the_first_screen_counts_what_the_tables_say() -> None:
    (told,) = re.findall(r"^\| met \| not applicable \| open \| all \|\n\|[-|]+\|\n\|([\d |]+)\|$", PAGE, re.MULTILINE)
    counted = Counter(row[3] for row in rows())
    assert [int(number) for number in told.split("|")] == [*(counted[verdict] for verdict in VERDICTS), len(IDS)]


def test_the_list_of_what_is_open_is_whole() -> None:
    listed = re.findall(r"V\d+\.\d+\.\d+", PAGE.partition("## What is open")[2].partition("\n## ")[0])
    assert sorted(listed) == sorted(row[0] for row in rows() if row[3] == "open")


def test_the_page_keeps_nothing_in_the_browser_and_writes_no_markup() -> None:
    """Ours; `vendor/` is of others. The one cookie is set by `service/pages/doors.py`."""
    for word in (
        "localStorage",
        "sessionStorage",
        "indexedDB",
        "document.cookie",
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
    ):
        for script in SCRIPTS.glob("*.js"):
            assert word not in script.read_text(encoding="utf-8"), script.name
    setters = [
        python.name
        for python in (ROOT / "service").rglob("*.py")
        if "set_cookie(" in python.read_text(encoding="utf-8")
    ]
    assert sorted(setters) == ["doors.py", "sign_in.py", "single_sign_on.py"]


MADE_OF_ESCAPED = {"whole", "names"}
"""Names of pieces of patterns that are constants and what `re.escape` gave."""


def reason(number: str) -> str:
    return next(row[4] for row in rows() if row[0] == number)


def test_what_is_said_of_headers_is_what_is_sent() -> None:
    everywhere = {name.decode(): value.decode() for name, value in BASE.items()}
    on_pages = {name.lower(): value for name, value in PAGE_HEADERS.items()}
    for headers in (everywhere, on_pages):
        policy = headers["content-security-policy"]
        assert ("rusted Types" in PAGE) <= ("require-trusted-types-for" in policy)
        assert "unsafe" not in policy
        assert f"`{headers['referrer-policy']}`" in reason("V3.4.5")
        assert f"`{headers['cache-control']}`" in reason("V14.2.2")


def test_what_goes_into_a_pattern_is_escaped() -> None:
    assert "re.escape" in reason("V1.2.9")
    for room in ("service", "workers", "imprimatur"):
        for python in (ROOT / room).rglob("*.py"):
            for pattern in re.findall(r"re\.\w+\(\s*rf[\"'][^\n]*", python.read_text(encoding="utf-8")):
                for piece in re.findall(r"(?<!\{)\{([a-z][^{}]*)\}(?!\})", pattern):
                    assert piece.startswith("re.escape(") or piece in MADE_OF_ESCAPED, f"{python}: {pattern}"
