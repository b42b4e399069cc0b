"""Names that other people gave, on a terminal: neither sequences that move its cursor nor markup of the library that draws."""

from __future__ import annotations

import io
import json
import sys

import pytest

from imprimatur.cli import output
from imprimatur.cli.datasets import print_notices, print_warnings
from imprimatur.cli.results import write_to_stdout
from imprimatur.visible import visible

EVIL = "\x1b[2J\x1b]0;title\x07 \x9b31m \u202egnp.exe \x7f a\r\nb [/bold] [link=http://evil.example]x[/link]"
FORBIDDEN = "\x1b\x07\x9b\u202e\x7f\r"


class Terminal(io.TextIOWrapper):
    def __init__(self):
        super().__init__(io.BytesIO(), encoding="utf-8", newline="", write_through=True)

    def isatty(self):
        return True


@pytest.fixture
def screens(monkeypatch):
    """Standard output and error of a person while something is done, less the colours of our own."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")

    def watch(way):
        made = Terminal(), Terminal()
        with monkeypatch.context() as here:  # pytest puts its own in place between a fixture and its test
            here.setattr(sys, "stdout", made[0])
            here.setattr(sys, "stderr", made[1])
            way()
        return "".join(screen.buffer.getvalue().decode() for screen in made)

    return watch


WAYS = {
    "table": lambda: output.print_table(EVIL, ("name", EVIL), [(EVIL, EVIL)]),
    "pairs": lambda: output.print_pairs({"name": EVIL}),
    "note": lambda: output.note(EVIL),
    "failure": lambda: output.print_failure(output.Failure(EVIL, column=EVIL), as_json=False),
    "failure as JSON": lambda: output.print_failure(output.Failure(EVIL, column=EVIL), as_json=True),
    "JSON": lambda: output.print_json({"name": EVIL}),
    "text": lambda: output.echo(EVIL),
    "notices": lambda: print_notices({"notices": [EVIL]}),
    "warnings": lambda: print_warnings({"warnings": [EVIL]}),
    "rows": lambda: write_to_stdout(iter([EVIL.encode()[:20], EVIL.encode()[20:]])),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_nothing_that_a_terminal_would_carry_out_is_printed(screens, way):
    seen = screens(way)
    kept = "\r" if way is WAYS["rows"] else ""  # CSV ends its lines so
    assert not [c for c in FORBIDDEN if c in seen and c not in kept]
    flat = seen.replace("\n", "").replace(" ", "")
    assert "[link=http://evil.example]x[/link]" in flat, "shown as it is, and no link"
    assert "\\u001b[2J" in flat
    assert "\\u202egnp.exe" in flat


def test_a_program_gets_the_same_document_and_the_same_rows(capfdbinary):
    output.print_json({"name": EVIL, "flag": "\U000e0001"})
    written = capfdbinary.readouterr().out.decode()
    assert json.loads(written) == {"name": EVIL, "flag": "\U000e0001"}
    assert visible(written, keep="\n") == written


def test_text_that_is_seen_anyway_stays_as_it_is():
    for text in ("Größe", "年齢", "a b", "naïve – “quoted”", ""):
        assert visible(text) == text
