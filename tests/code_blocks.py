"""Blocks of code on pages: found as a Markdown reader finds them, run in a reader's folder, compared with what the page shows."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
SHELL = {"", "sh", "bash", "console"}
OUTPUT = {"text", "csv"}
EXIT_CODE = re.compile(r"#.*\bexit code (\d+)")
IDENTIFIER = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,}(?:-[0-9a-f]{4,12})*\b")
NUMBER = re.compile(r"\d+(?:[.,:]\d+)*(?:e-\d+)?")
SECONDS_PER_BLOCK = 600


@dataclass(frozen=True)
class Block:
    """One block of code of one page."""

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(path: Path) -> list[Block]:
    """Fenced and indented ones, in lists, tables and quotations, too."""
    page = path.relative_to(ROOT).as_posix()
    found = []
    for token in MarkdownIt("commonmark").parse(path.read_text(encoding="utf-8")):
        if token.type in {"fence", "code_block"} and token.map is not None:
            language = token.info.split()[0] if token.info.strip() else ""
            language = "indented" if token.type == "code_block" else language
            found.append(Block(page, token.map[0] + 1, language, token.content))
    return found


def commands_of(block: Block) -> str:
    """What of a shell's block is typed: all of it, or of a recorded session what stands after `$ `."""
    if not re.search(r"^\$ ", block.text, re.MULTILINE):
        return block.text
    typed, continues = [], False
    for line in block.text.splitlines():
        if line.startswith("$ ") or continues:
            typed.append(line.removeprefix("$ "))
            continues = line.endswith("\\")
    return "\n".join(typed) + "\n"


def shown_by(block: Block) -> str:
    """What a recorded session shows as the answer."""
    typed = commands_of(block)
    if typed == block.text:
        return ""
    return "\n".join(line for line in block.text.splitlines() if line.removeprefix("$ ") not in typed.splitlines())


def plain(line: str) -> str:
    """A line without what differs from run to run: numbers, ids, and how columns are aligned."""
    return re.sub(r"[\s─]+", " ", NUMBER.sub("0", IDENTIFIER.sub("0", line))).strip()


def missing_lines(shown: str, printed: str) -> list[str]:
    """Lines of a page that the program does not print, in this order. A line that ends with … shows only how it begins."""
    rest = [plain(line) for line in printed.splitlines()]
    missing = []
    for line in filter(None, map(plain, shown.splitlines())):
        begins = line.removesuffix("…").rstrip()
        at = next(
            (n for n, each in enumerate(rest) if each == line or (line != begins and each.startswith(begins))), None
        )
        if at is None:
            missing.append(line)
        else:
            rest = rest[at + 1 :]
    return missing


def is_like_rows(shown: str, printed: str) -> bool:
    """Rows of a CSV differ at every draw: the names are the same, and the number of cells in each row."""
    ours, theirs = (list(csv.reader(io.StringIO(text))) for text in (shown, printed))
    return ours[0] in theirs and {len(row) for row in ours} == {len(ours[0])} and len(theirs) >= len(ours)


@dataclass
class Reader:
    """A person who types a page's blocks one after another, in one folder, with one shell and one Python.

    `addresses`: what stands on the page, and what this person has in its place.
    """

    folder: Path
    url: str
    environment: dict[str, str] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    printed: str = ""

    def run(self, block: Block) -> None:
        """Run a block, or compare what is shown with what the block before printed; AssertionError names the place."""
        if block.language in SHELL:
            self._shell(block)
        elif block.language == "python":
            self._python(block)
        elif block.language == "csv":
            assert is_like_rows(block.text, self.printed), f"{block.place}: other columns:\n{self.printed}"
        else:
            assert block.language in OUTPUT, f"{block.place}: neither run nor listed: {block.language}"
            missing = missing_lines(block.text, self.printed)
            assert not missing, f"{block.place} shows {missing}, but what came is\n{self.printed}"

    def _here(self, text: str) -> str:
        places = {"http://127.0.0.1:8000": self.url, '"https://imprimatur.example"': f'"{self.url}"'}
        for shown, ours in (places | self.addresses).items():
            text = text.replace(shown, ours)
        return text

    def _shell(self, block: Block) -> None:
        state = self.folder / ".exported"
        typed = self._here(commands_of(block))
        script = (
            f'[ ! -e "{state}" ] || . "{state}"\ntrap \'export -p > "{state}"\' EXIT\nset -eu -o pipefail -a\n{typed}'
        )
        deadline = time.monotonic() + SECONDS_PER_BLOCK
        while (done := self._typed(script)).returncode and "not_ready" in done.stdout and time.monotonic() < deadline:
            time.sleep(0.5)  # what a reader does who is told to wait
        self.printed = done.stdout
        says = EXIT_CODE.search(typed.rstrip().splitlines()[-1])
        expected = int(says[1]) if says else 0
        assert done.returncode == expected, f"{block.place} ended with {done.returncode}:\n{typed}\n{done.stdout}"
        shown = shown_by(block)
        if shown:
            like = (
                is_like_rows(shown, done.stdout)
                if "," in shown.splitlines()[0]
                else not missing_lines(shown, done.stdout)
            )
            assert like, f"{block.place} shows\n{shown}\nbut what came is\n{done.stdout}"

    def _typed(self, script: str) -> subprocess.CompletedProcess[str]:
        binaries = str(Path(sys.executable).parent)
        return subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env={
                **os.environ,
                **self.environment,
                "PATH": os.pathsep.join([binaries, os.environ["PATH"]]),
                "PYTHONPATH": str(ROOT),
                "NO_COLOR": "1",
                "COLUMNS": "500",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=SECONDS_PER_BLOCK,
        )

    def _python(self, block: Block) -> None:
        heard = io.StringIO()
        lines = "\n" * block.line + self._here(block.text)
        with contextlib.redirect_stdout(heard):
            exec(compile(lines, block.page, "exec"), self.names)
        self.printed = heard.getvalue()
