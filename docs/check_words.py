"""`python -m docs.check_words`: plain words in README, docs/ and the code. Names every sentence that is too long and every word that is ours alone.

Of the code, docstrings and comments are looked at, for words alone. Code blocks, the log of what failed and pages that are made from the code are left out; docs/decisions is not.
Sentences in tables are not measured; old words in them are found.
"""

from __future__ import annotations

import re
import sys
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
LONGEST_SENTENCE = 40
"""Words."""
OLD_WORDS = {
    "nobody": "no one, or say who",
    "whoever": "anyone who",
    "nearer": "closer",
    "farther": "further away",
    "noised": "noisy",
    "hence": "so",
    "thereof": "of it",
    "nought": "zero",
    "upright": "deskewed",
    "becomes known": "is revealed",
    "whomever": "anyone whom",
    "noising": "adding noise to",
    "of the distance": "lower error by … %",
}
OF_OTHERS = {"log.md", "licences.md", "orders.md"}
"""What failed, in a line each; names of packages; and orders, whose words are those of the code."""

PACKAGES = ("service", "workers", "imprimatur", "bench", "tests", "docs", "supply", "examples")
BEFORE_A_STATEMENT = {tokenize.ENCODING, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}

FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`]*`")
LINK_TARGET = re.compile(r"\]\([^)]*\)")
ITEM = re.compile(r"^ *([-*+]|\d+\.) +(?=\S)")
NOT_PROSE = ("|", "#", "<", "![", "---")
SENTENCE_END = re.compile(
    r"(?<=[.!?:;])[)\"*_]*\s+(?=[A-Z*`\[(\"])|(?<=[.!?])(?<! al\.)[)\"*_]*\s+(?=[\d\u0391-\u03c9])"
)
"""A full stop, or a colon or semicolon before a capital letter or code. A sentence may begin with a figure or a Greek letter."""


def pages() -> list[Path]:
    """What is checked."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if path.name not in OF_OTHERS and path.parent.name != "reference"]


def without_code(text: str) -> str:
    """The text with code blocks, fenced or indented, as empty lines; the numbers of lines stay."""
    text = FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    kept = []
    margin, after_blank, in_code = 0, True, False
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if line.strip():
            if indent < margin and after_blank:
                margin = 0
            item = ITEM.match(line)
            in_code = indent >= margin + 4 and (after_blank or in_code) and not (item and margin)
            if item and not in_code:
                margin = item.end()
        after_blank = not line.strip()
        kept.append("" if in_code else line)
    return "\n".join(kept)


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """(Line, sentence) of running text: no code, no tables, no headings."""
    paragraph: list[str] = []
    begins = 1
    numbered = False
    for number, line in enumerate([*without_code(text).splitlines(), ""], 1):
        bare = line.strip()
        ends = not bare or bare.startswith(NOT_PROSE)
        item = ITEM.match(line)
        # A line of a paragraph that happens to begin with a figure and a full stop ("at most\n73. The …") is no item.
        if item and paragraph and item[1][0].isdigit() and item[1] != "1." and not numbered:
            item = None
        if (ends or item) and paragraph:
            yield from _split(paragraph, begins)
            paragraph = []
        if not ends:
            begins = begins if paragraph else number
            numbered = item[1][0].isdigit() if item else numbered and bool(paragraph)
            paragraph.append(line[item.end() :].strip() if item else bare)


def _split(paragraph: list[str], begins: int) -> Iterator[tuple[int, str]]:
    text = "\n".join(paragraph)
    # What stands in code ends no sentence.
    masked = CODE.sub(lambda match: "`" + re.sub(r"\S", "x", match[0][1:-1]) + "`", text)
    at = 0
    for end in [*SENTENCE_END.finditer(masked), None]:
        sentence = text[at : end.start() if end else len(text)]
        yield begins + text.count("\n", 0, at), " ".join(sentence.split())
        at = end.end() if end else at


def words_of(sentence: str) -> list[str]:
    """The words one reads: a link counts by its text, a piece of code as one word, a formula by its symbols."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", CODE.sub("code", sentence))
    return [word for word in text.split() if re.search(r"\w", word)]


def old_words(text: str) -> Iterator[tuple[int, str]]:
    """(Line, old word) of everything but code and the targets of links; a line may end between two words."""
    text = LINK_TARGET.sub("]", CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), without_code(text)))
    found = []
    for word in OLD_WORDS:
        pattern = r"\b" + word.replace(" ", r"\s+") + r"\b"
        found += [(text.count("\n", 0, match.start()) + 1, word) for match in re.finditer(pattern, text, re.IGNORECASE)]
    yield from sorted(found)


def faults(text: str) -> list[tuple[int, str]]:
    """(Line, what is wrong) with one page."""
    found = []
    for line, sentence in sentences(text):
        count = len(words_of(sentence))
        if count > LONGEST_SENTENCE:
            found.append((line, f"a sentence of {count} words: {sentence[:60]}…"))
    found += [(line, f"'{word}': {OLD_WORDS[word]}") for line, word in old_words(text)]
    return sorted(found)


def faults_of_code(path: Path) -> list[tuple[int, str]]:
    """(Line, old word) of the comments of a module and of its docstrings: texts that stand alone as a statement."""
    found = []
    begins_statement = True
    with path.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and begins_statement):
                text = "\n".join(line.strip() for line in token.string.splitlines())
                found += [(token.start[0] + line - 1, f"'{word}': {OLD_WORDS[word]}") for line, word in old_words(text)]
            if token.type not in {tokenize.COMMENT, tokenize.NL}:
                begins_statement = token.type in BEFORE_A_STATEMENT
    return found


def main() -> None:
    """Print every fault; exit code 1 if there is one."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {fault}"
        for path in pages()
        for line, fault in faults(path.read_text(encoding="utf-8"))
    ]
    found += [
        f"{path.relative_to(ROOT)}:{line}: {fault}"
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, fault in faults_of_code(path)
    ]
    for fault in found:
        print(fault)  # noqa: T201 - a command
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
