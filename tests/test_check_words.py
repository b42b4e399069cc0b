"""What `docs.check_words` finds, and what it leaves out. Whether the pages pass is `make check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from docs.check_words import LONGEST_SENTENCE, OLD_WORDS, faults, faults_of_code, old_words, pages, sentences, words_of

if TYPE_CHECKING:
    from pathlib import Path

LONG = "A " + "very " * (LONGEST_SENTENCE - 2) + "long sentence."
SHORT = "A " + "very " * (LONGEST_SENTENCE - 3) + "long sentence."


def lines_of(text: str) -> list[int]:
    """The lines that the check names."""
    return [line for line, _ in faults(text)]


def test_a_long_sentence_is_found_where_it_begins() -> None:
    """One word below the limit passes; the line is that of the sentence, not of its paragraph."""
    assert len(words_of(SHORT)) == LONGEST_SENTENCE
    assert faults(SHORT) == []
    text = "# Title\n\nFirst. Second\none.\n" + LONG.replace(" very very", " very\nvery", 3)
    assert lines_of(text) == [5]
    assert "a sentence of 41 words: A very" in faults(text)[0][1]


@pytest.mark.parametrize("word", sorted(OLD_WORDS))
def test_an_old_word_is_found(word: str) -> None:
    """In text, headings and tables; at the beginning of a sentence; over the end of a line; not inside another word."""
    assert [found for _, found in old_words(f"What {word} is.")] == [word]
    assert lines_of(f"Text.\n\n## {word.capitalize()}\n\n| a | {word} |\n") == [3, 5]
    assert lines_of("so " + word.replace(" ", "\n")) == [1]
    assert faults(f"x{word}x") == []


@pytest.mark.parametrize(
    "block",
    [
        f"```python\n{LONG} nobody\n```",
        f"- item\n\n  ```\n  {LONG} nobody\n  ```",
        f"Text:\n\n    {LONG} nobody\n\n    {LONG}\n\nText.",
        f"- item\n\n      {LONG} nobody",
        "`the key nobody has`",
        "[text](decisions/0009-pairs-by-noised-scores.md)",
    ],
)
def test_code_and_targets_of_links_are_left_out(block: str) -> None:
    """Fenced, indented, indented in a list, and in a line."""
    assert faults(block) == []


def test_tables_and_headings_have_no_sentences() -> None:
    """A row of a table may be long."""
    assert faults(f"| a |\n|---|\n| {LONG} |\n\n# {LONG}\n\n<!-- {LONG} -->") == []


@pytest.mark.parametrize(
    "text",
    [f"Text\n    {LONG}", f"- item\n\n  {LONG}", f"- item\n  - {LONG}", f"- item\n\n    {LONG}", f"1. item\n2. {LONG}"],
)
def test_items_and_lines_that_continue_are_text(text: str) -> None:
    """Only a block that follows an empty line, four spaces further in than its list, is code."""
    assert len(faults(text)) == 1


def test_where_sentences_end() -> None:
    """Before a capital letter, a Greek one, code, a figure; not in code, nor before the year of a source."""
    text = "It is `a. B` (Rogers et al. 2016). 60,000 rows. `x` is one: Two; three. δ is\n73. Then four."
    assert list(sentences(text)) == [
        (1, "It is `a. B` (Rogers et al. 2016)."),
        (1, "60,000 rows."),
        (1, "`x` is one:"),
        (1, "Two; three."),
        (1, "δ is 73."),
        (2, "Then four."),
    ]


def test_a_link_counts_by_its_text() -> None:
    """And code as one word."""
    assert words_of("See [two words](a/long/path.md) and `some code here`.") == ["See", "two", "words", "and", "code."]


def test_what_is_checked() -> None:
    """README and docs/, but no page that is made from the code."""
    names = {path.name for path in pages()}
    assert {"README.md", "privacy.md", "results.md"} <= names
    assert not names & {"orders.md", "log.md", "api.md"}


def test_old_words_of_code_are_found_in_docstrings_and_comments(tmp_path: Path) -> None:
    """Not in names, other texts, or what stands in backticks."""
    module = tmp_path / "module.py"
    module.write_text(
        '"""Nobody."""\n'
        'NAMES = (\n    # `nobody`, whoever\n    "nobody",\n)\n'
        '"""Of `nobody`,\nor hence."""\n'
        'def nobody(noised: str) -> str:\n    """It is\n\n    nearer."""\n    return "nobody"  # noised\n'
    )
    found = [(line, fault.split("'")[1]) for line, fault in faults_of_code(module)]
    assert found == [(1, "nobody"), (3, "whoever"), (7, "hence"), (11, "nearer"), (12, "noised")]
