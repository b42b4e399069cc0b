"""Names of columns and classes in a model card: one person declares them, another opens the card. Read by a real Markdown reader."""

from __future__ import annotations

import re
import shlex

import pytest
from markdown_it import MarkdownIt

from service.domain.image_schema import ImageSchema
from service.domain.table_schema import TableSchema
from workers.encoding.table import TableDomain
from workers.generators.image.card import image_card
from workers.generators.markdown import code, escaped, indented_json
from workers.generators.table.card import table_card

NAMES = (
    "[x](javascript:alert(1))",
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "![x](http://evil.example/pixel.png)",
    "a|b",
    "a\\|b",
    "a\\",
    "`whoami`",
    "``a` b",
    "**bold** _so_ ~~not~~",
    "https://evil.example/",
    "www.evil.example",
    "<https://evil.example/>",
    "&lt;b&gt; &amp;",
    "# heading",
    "[ref]: http://evil.example",
    "$(touch evil); `touch evil` 'x'",
    "$a^b$",
    "hours_per_week",
    "Größe in cm",
)
UNSEEN = ("a\nb", "# a\n\n# heading\n", "a\u202egnp.exe", "\x1b[2J", "a\u200bb", "a\r\n- b")
READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def leaves(tokens):
    for token in tokens:
        yield token
        yield from leaves(token.children or ())


def read(markdown):
    """The texts of each block, and the kinds of everything that is more than text."""
    tokens = list(leaves(READER.parse(markdown)))
    blocks = ["".join(c.content for c in t.children) for t in tokens if t.type == "inline"]
    return blocks, {t.type for t in tokens}


ACTIVE = {"link_open", "html_inline", "html_block", "image", "em_open", "strong_open", "s_open"}


@pytest.mark.parametrize("name", [*NAMES, *UNSEEN])
def test_a_name_is_shown_and_never_carried_out(name):
    shown = name if name.isprintable() else None
    for markdown in (f"- a: {escaped(name)} b\n", f"| a | b |\n|---|---|\n| {escaped(name)} | 1 |\n"):
        blocks, kinds = read(markdown)
        assert not kinds & (ACTIVE | {"code_inline"})
        assert not re.search(r"(?<!\\)://|www\.", markdown), "GitHub's reader would make a link of it"
        assert shown is None or any(shown in block for block in blocks), blocks
        assert len(blocks) == (4 if "|---" in markdown else 1), "a cell or a line more than there are"
        assert markdown.count("\n") == (3 if "|---" in markdown else 1)
    blocks, kinds = read(f"Say {code(name)} to it.\n")
    assert not kinds & ACTIVE
    assert shown is None or blocks == [f"Say {shown} to it."]
    (line,) = indented_json({"condition_on": name}).splitlines()
    assert line.startswith("    ")
    assert line.isprintable()


@pytest.mark.parametrize("name", NAMES)
def test_a_card_of_a_table_shows_its_columns(name):
    fields = [
        {"name": name, "type": "string", "constraints": {"enum": ["a", "b"], "required": True}},
        {"name": "plain", "type": "integer", "constraints": {"minimum": 0, "maximum": 9, "required": True}},
    ]
    domain = TableDomain.from_schema(TableSchema.model_validate({"fields": fields}), numeric_bins=4)
    unit = f"all rows of one value of {name!r}, of which at most 3 are used"
    order = {"method": "idpgan", "condition_on": name}
    card = table_card(domain=domain, condition=name, certificate={"unit": unit}, order=order)
    blocks, kinds = read(card)
    assert not kinds & ACTIVE
    cells = blocks[blocks.index("categories or bins") + 1 :]
    assert (cells[0], cells[3]) == (name, "plain")
    assert f"Protected unit: {unit}" in blocks
    (use,) = (block for block in blocks if "sets the condition" in block)
    assert use.startswith(f"--where {shlex.quote(f'{name}:VALUE')} sets")
    assert len(re.findall(r"^## ", card, re.MULTILINE)) == len(re.findall(r"^## ", plain_card(domain), re.MULTILINE))


def plain_card(domain):
    return table_card(domain=domain, condition="plain", certificate={}, order={"method": "idpgan"})


@pytest.mark.parametrize("name", NAMES)
def test_a_card_of_images_gives_a_command_that_names_the_class_and_runs_nothing_else(name):
    schema = ImageSchema.model_validate(
        {"type": "image", "height": 4, "width": 4, "channels": 1, "classes": [name, "b"]}
    )
    card = image_card(schema=schema, certificate={}, order={"method": "mixture"})
    assert not read(card)[1] & ACTIVE
    (line,) = (line for line in card.splitlines() if "--where" in line)
    words = shlex.split(line)
    assert words[:2] == ["python", "sample.py"]
    assert words[words.index("--where") + 1] == f"label={name}"


def test_a_card_of_images_without_classes_gives_no_command_that_would_be_refused():
    schema = ImageSchema.model_validate({"type": "image", "height": 4, "width": 4, "channels": 1})
    card = image_card(schema=schema, certificate={}, order={"method": "mixture"})
    assert "python sample.py --rows 1000 --seed 7 -o some.npz" in card
    assert "--where" not in card
