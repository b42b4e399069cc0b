"""Text of other people where a terminal, or a reader of plain text, would carry it out instead of showing it."""

from __future__ import annotations


def visible(text: str, *, keep: str = "") -> str:
    r"""The text, with every character that prints nothing written as JSON writes it: `\u001b`, `\u202e`.

    Among those are the first characters of terminal sequences (ESC, and 0x80 to 0x9f), line feeds and marks that turn the
    direction of text around. JSON stays the same document. `keep`: those that are wanted, such as line feeds.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else _as_json(c) for c in text)


def _as_json(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
