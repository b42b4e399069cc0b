"""docs/reference/methods.md: a card for every method."""

from __future__ import annotations

from service.methods.catalogue import CATALOGUE

HEAD = """# Methods

What each method does, who described it, whether the published privacy analysis holds, and what it releases about private rows. The knobs of each: [orders](../orders.md).
A release's ZIP, its certificate and `GET /v1/methods` say the same.
"""
_HOLDS = {"table": "tables", "image": "images"}


def render() -> str:
    """The whole page."""
    parts = [HEAD]
    for name, method in CATALOGUE.items():
        card = method.card
        parts += [f"## `{name}`\n", f"{card.summary}\n"]
        parts.append(
            f"- **For** {' and '.join(sorted(_HOLDS[each] for each in method.takes))}. Its ZIP holds {card.makes}."
        )
        parts += [f"- **Source.** {card.source}.", f"- **Privacy analysis.** {card.paper_holds}"]
        if card.cannot_learn:
            parts.append(f"- **What it cannot learn.** {card.cannot_learn}")
        parts.append("")
        rows = [f"| {each.what} | {each.of_one_unit} |" for each in card.releases.values()]
        if rows:
            parts.append("\n".join(["| noisy release | how far one unit moves it |", "|---|---|", *rows, ""]))
    return "\n".join(parts)
