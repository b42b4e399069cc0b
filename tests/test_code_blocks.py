"""Every block of every page is run against a real service, in the order of its page, or listed here.

Each page has a tenant and a folder of its own. What a page shows as printed is compared, but for numbers. JSON that a page
shows is a part of a file that is there by then, or an order that is priced.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import runpy
import shutil
from contextlib import nullcontext

import pytest

from imprimatur import Client
from service.local import EmbeddedStack
from service.local.servers import TEST_SETTINGS
from tests.at_hand import AFTER, BEFORE, uploaded, warehouses
from tests.code_blocks import ROOT, Block, Reader, blocks, is_like_rows, missing_lines

pytestmark = pytest.mark.slow

FOLDERS = ("docs", "bench", "examples", "imprimatur", "service", "workers")
ELSEWHERE = {
    "docs/operating.md": "tests/service/upkeep/test_from_nothing.py",
    "docs/schemas.md": "tests/test_docs.py",
}
"""Pages of which another test runs every block: against servers that nothing has touched, and through the parser of schemas."""
DRAWN = {"formula", "mermaid"}
"""Languages in which nothing can be run."""


def pages_with_blocks():
    """All pages of the repository."""
    found = [*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))]
    pages = (path.relative_to(ROOT).as_posix() for path in sorted(found) if "help" not in path.parts)
    return [page for page in pages if any(block.language not in DRAWN for block in blocks(ROOT / page))]


PAGES = [page for page in pages_with_blocks() if page not in ELSEWHERE]

NOT_RUN = {
    ("README.md", "make demo "): "installs everything, and then is these tests",
    ("docs/tutorial.md", "$ make up"): "runs until Ctrl-C; the service of the tests stands for it",
    ("docs/notebooks.md", "make up"): "likewise",
    ("docs/notebooks.md", "jupyter lab"): "installs, and runs until Ctrl-C; tests/test_notebooks.py runs the notebooks",
    (
        "docs/client.md",
        'Client("http://127.0.0.1:8000", "imp_…")',
    ): "the key is the reader's; the next blocks have a client of the test",
    (
        "docs/how-to/install-on-many-machines.md",
        "imprimatur install --passwords",
    ): "wants a Postgres of the reader's own; tests/service/upkeep/test_from_nothing.py runs these commands",
    (
        "docs/how-to/install-on-many-machines.md",
        "imprimatur install --check",
    ): "wants other hosts; the same test runs it",
    ("docs/audits.md", "make planted"): "all attacks and all mistakes take hours; tests/privacy runs some of each",
    (
        "docs/audits.md",
        "--releases",
    ): "takes hours, and data of others; tests/privacy/test_release_attacks.py runs it, small",
    ("docs/command_line.md", "schema edit"): "asks a person; tests/service/cli/test_schema_edit.py answers",
}
"""(page, words of the block): why it cannot run here."""

AS_PRINTED = {"docs/tutorial.md"}
"""Shows rows of the example; all other pages get rows of their own, since the same rows would share one budget."""
EXAMPLES = ("clinic_visits.schema.json", "poker_hand.schema.json")
OF_AN_OPERATOR = {"docs/how-to/back-up-and-restore.md", "docs/how-to/rotate-keys.md"}
"""They stop the service or change its keys, so each has one of its own, in `imprimatur-data`."""
WITH_WAREHOUSES = "docs/command_line.md"
APART = {"docs/command_line.md"}
"""Pages whose sections need nothing of those before them."""


def reason(block):
    """Why a block is not run, or None."""
    reasons = [why for (page, words), why in NOT_RUN.items() if page == block.page and words in block.text]
    return reasons[0] if reasons else None


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A reader's folder: the examples, with other rows, and nothing else."""
    (tmp_path / "examples").mkdir()
    for name in EXAMPLES:
        shutil.copy(ROOT / "examples" / name, tmp_path / "examples")
    rng = random.Random()
    made_up = runpy.run_path(str(ROOT / "examples" / "clinic_visits.py"))
    made_up["write"](tmp_path / "examples" / "clinic_visits.csv", rng.getrandbits(64))
    hands = [[rng.randint(1, 13 if place % 2 else 4) for place in range(10)] for _ in range(2_000)]
    rows = [",".join(map(str, [*hand, rng.randint(0, 9)])) for hand in hands]
    header = (ROOT / "examples" / "poker_hand.csv").read_text(encoding="utf-8").partition("\n")[0]
    (tmp_path / "examples" / "poker_hand.csv").write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def excerpt_is_true(block, folder):
    """JSON that a page shows is a part of a JSON file that is in the folder by then: some members, or some fields."""
    text = block.text.strip().rstrip(",")
    files = [json.loads(path.read_text(encoding="utf-8")) for path in folder.rglob("*.json")]
    if text.startswith("{"):
        return any(all(field in file.get("fields", []) for field in json.loads(f"[{text}]")) for file in files)
    members = json.loads(f"{{{text}}}")
    return any(all(file.get(name) == value for name, value in members.items()) for file in files)


# -- the pages ------------------------------------------------------------------------------------------------------------


def is_order(text):
    """A whole document with a method; fields of a schema that stand one after another are none."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        return False
    return isinstance(document, dict) and "method" in document


def parts(page):
    """(Name, first line, line after the last) of what is run as one test: a page, or each section that needs none before it."""
    if page not in APART:
        return [(page, 0, math.inf)]
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    heads = [number for number, line in enumerate(lines, 1) if line.startswith("## ")]
    cases = [(lines[first - 1], first, last) for first, last in itertools.pairwise([*heads, math.inf])]
    return [case for case in cases if any(case[1] < block.line < case[2] for block in blocks(ROOT / page))]


def run_all(reader, page, client=None, lines=(0, math.inf)):
    for block in blocks(ROOT / page):
        if not lines[0] < block.line < lines[1]:
            continue
        if block.language in DRAWN or reason(block) is not None:
            continue
        if block.language == "json" and is_order(block.text):
            order = json.loads(block.text)
            assert client.datasets(), f"{block.place}: no dataset to order it of"
            priced = client.dataset(client.datasets()[0]["id"]).quote(order)
            assert priced.price.epsilon <= order["epsilon"], block.place
            (reader.folder / f"{order['method']}.json").write_text(block.text, encoding="utf-8")
        elif block.language == "json":
            assert excerpt_is_true(block, reader.folder), f"{block.place} is in no file"
        else:
            reader.run(block)


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        pytest.param(page, lines, id=page if name == page else f"{page} {name}")
        for page in PAGES
        if page not in OF_AN_OPERATOR
        for name, *lines in parts(page)
    ],
)
def test_every_block_of_a_page_runs_or_is_listed(page, lines, stack, api_key, folder, monkeypatch, request):
    monkeypatch.setenv("IMPRIMATUR_URL", stack.url)
    monkeypatch.setenv("IMPRIMATUR_API_KEY", api_key)
    if page in AS_PRINTED:
        shutil.copy(ROOT / "examples" / "clinic_visits.csv", folder / "examples")
    (folder / "imprimatur-data").mkdir()
    (folder / "imprimatur-data" / "admin.key").write_text(api_key, encoding="utf-8")
    own = (
        warehouses(folder, request.getfixturevalue("database"), monkeypatch)
        if page == WITH_WAREHOUSES
        else nullcontext({})
    )
    with Client(stack.url, api_key) as client, own as addresses:
        BEFORE.get(page, lambda *_: None)(client, folder)
        names = {"client": client, "api_key": api_key}
        run_all(Reader(folder, stack.url, names=names, addresses=addresses), page, client, lines)
        AFTER.get(page, lambda *_: None)(names, folder)


def own_service(folder):
    return EmbeddedStack(folder / "imprimatur-data", 0, postgres_settings=TEST_SETTINGS)


def test_keys_are_rotated_as_the_page_says(folder, monkeypatch):
    with own_service(folder) as service:
        monkeypatch.setenv("IMPRIMATUR_URL", service.url)
        monkeypatch.setenv("IMPRIMATUR_API_KEY", service.admin_key)
        before = (folder / "imprimatur-data" / "secret.key").read_bytes()
        run_all(Reader(folder, service.url), "docs/how-to/rotate-keys.md")
        assert (folder / "imprimatur-data" / "secret.key").read_bytes() != before
        with Client(service.url, service.admin_key) as client:
            assert len(client.signing_keys()) == 2


def test_a_backup_of_the_page_can_be_restored(folder):
    with own_service(folder) as service, Client(service.url, service.admin_key) as client:
        uploaded(client, folder)
    run_all(Reader(folder, ""), "docs/how-to/back-up-and-restore.md")
    assert (folder / "lost").is_dir()
    with own_service(folder) as service, Client(service.url, service.admin_key) as client:
        assert [dataset["name"] for dataset in client.datasets()] == ["visits"]
        client.dataset("visits").order({"epsilon": 1}).wait()


def test_what_is_listed_as_not_run_is_there_once():
    everything = list(itertools.chain.from_iterable(blocks(ROOT / page) for page in PAGES))
    assert set(ELSEWHERE) | set(BEFORE) | OF_AN_OPERATOR | AS_PRINTED <= set(pages_with_blocks())
    for page, words in NOT_RUN:
        assert len([block for block in everything if block.page == page and words in block.text]) == 1, (page, words)


# -- what this test itself must find ------------------------------------------------------------------------------------


def test_other_output_is_found():
    assert missing_lines("name  visits\nunits 12", "name    visits\nunits   1400\n") == []
    assert missing_lines("spent ε = 2 …", "left  ε = 1\nspent ε = 3, of 4\n") == []
    assert missing_lines("units 12\nname visits", "name visits\nunits 1400") == ["name visits"]
    assert missing_lines("colour red", "colour blue") == ["colour red"]
    assert is_like_rows("a,b\n1,2\n", 'a,b\n7,"8,1"\n')
    assert not is_like_rows("a,b\n1,2\n", "a,c\n7,8\n")
    assert not is_like_rows("a,b\n1\n", "a,b\n7,8\n")


@pytest.mark.parametrize(
    ("language", "text"), [("yaml", "a: 1"), ("indented", "imprimatur budget visits"), ("sh", "false")]
)
def test_a_block_that_cannot_be_run_or_fails_is_found(language, text, tmp_path):
    with pytest.raises(AssertionError, match=r"page\.md:3"):
        Reader(tmp_path, "").run(Block("page.md", 3, language, text))


def test_an_exit_code_that_a_page_names_is_demanded(tmp_path):
    reader = Reader(tmp_path, "")
    reader.run(Block("page.md", 1, "sh", "exit 3   # exit code 3"))
    with pytest.raises(AssertionError, match="ended with 0"):
        reader.run(Block("page.md", 1, "sh", "true   # exit code 3"))
