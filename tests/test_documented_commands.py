"""Commands that any page names exist, with these options; modules can be found; Python that a page shows is Python."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shlex
import textwrap
from functools import lru_cache

import pytest
import typer

from imprimatur.cli.application import app
from tests.code_blocks import ROOT, SHELL, blocks, commands_of

PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "log.md"]  # which speaks of what was
END_OF_COMMAND = {"&&", "||", "|", ";", ">", ">>", "<", "2>", "&"}
IN_BACKTICKS = re.compile(r"`((?:imprimatur|python -m) [^`]+)`")


@lru_cache
def program():
    return typer.main.get_command(app)


def words_of(line):
    """A line as a shell divides it, as far as the first command goes; None where it is a sentence."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    ends = [n for n, word in enumerate(words) if word in END_OF_COMMAND or word.endswith(";")]
    return words[: ends[0]] if ends else words


def fault_of_imprimatur(words):
    """What is wrong with the words after `imprimatur`, or None. A name with `·` in it stands for several."""
    command, at = program(), 0
    context = typer.Context(command, info_name="imprimatur")
    while at < len(words) and hasattr(command, "get_command") and not words[at].startswith("-"):
        found = {name: command.get_command(context, name) for name in words[at].split("·")}
        unknown = [name for name, each in found.items() if each is None and not name.isupper() and name != "…"]
        if unknown:
            return f"there is no command {' '.join([*words[:at], unknown[0]])}"
        command, at = next(iter(found.values())), at + 1
        if command is None:  # COMMAND, which stands for any
            return None
        context = typer.Context(command, info_name=words[at - 1], parent=context)
    options = {name: option for option in command.params for name in [*option.opts, *option.secondary_opts]}
    options |= {"--help": None, "-h": None, "--version": None}
    wrong = [word for word in words[at:] if re.match(r"--?[a-z]", word) and word.split("=")[0] not in options]
    if wrong:
        return f"imprimatur {' '.join(words[:at])} has no option {wrong[0]}"
    return _too_many(command, words[at:], options)


def _too_many(command, words, options):
    """More words that are no options than the command takes."""
    places = [option for option in command.params if option.param_type_name == "argument"]
    if any(place.nargs == -1 for place in places) or hasattr(command, "get_command"):
        return None
    alone, words = 0, list(words)
    while words:
        word = words.pop(0)
        if not re.match(r"--?[a-z]", word):
            alone += word not in {"…", "·"}
        elif "=" not in word and options[word] is not None and not options[word].is_flag:
            words[:1] = []
    return f"{command.name} takes {len(places)} words, not {alone}" if alone > len(places) else None


def fault_of(line):
    """What is wrong with one command line; None: nothing, or it is no command of ours."""
    words = words_of(line)
    if not words:
        return None
    if words[0] == "imprimatur":
        return fault_of_imprimatur(words[1:])
    if (
        words[:2] == ["python", "-m"]
        and len(words) > 2
        and re.fullmatch(r"(bench|docs|service|workers|supply)[\w.]*", words[2])
    ):
        return None if importlib.util.find_spec(words[2]) else f"there is no module {words[2]}"
    return None


def lines_of(block):
    """Command lines of a block, each whole."""
    joined = textwrap.dedent(commands_of(block)).replace("\\\n", " ")
    return [re.sub(r"^(?:exec |\w+=\$\()", "", line.strip()) for line in joined.splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_exist_with_their_options(page):
    lines = [line for block in blocks(page) if block.language in SHELL | {"indented"} for line in lines_of(block)]
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    lines += [part for found in IN_BACKTICKS.findall(text) for part in found.split(" · ")]
    faults = {line: fault for line in lines if (fault := fault_of(line)) is not None}
    assert not faults


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_of_a_page_is_python(page):
    for block in blocks(page):
        if block.language == "python":
            ast.parse(block.text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_json_of_a_page_is_json(page):
    """Whole, or some members of an object, or some items of a list."""
    for block in blocks(page):
        if block.language == "json":
            text = block.text.strip().rstrip(",")
            json.loads(f"[{text}]" if text.startswith("{") else f"{{{text}}}")
    prose = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for text in re.findall(r"`(\{\s*\"[^`]*\})`", prose):
        json.loads(text)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("imprimatur budgets visits", "no command"),
        ("imprimatur key burn KEY_ID", "no command key burn"),
        ("imprimatur key create·burn", "no command key burn"),
        ("imprimatur sample visits/first --row 5", "no option --row"),
        ("imprimatur budget visits and more", "takes 1 words, not 3"),
        ("imprimatur sample visits/first -n 5 extra -o x.csv", "takes 1 words, not 2"),
        ("python -m bench.nothing", "no module"),
    ],
)
def test_a_command_that_does_not_exist_is_found(line, fault):
    assert fault in str(fault_of(line))


@pytest.mark.parametrize(
    "line",
    [
        "imprimatur sample visits/first -n 5 --where 'age>=65&sex=f' -o x.csv  # a remark",
        "imprimatur key create·list·replace·revoke",
        "imprimatur COMMAND --help",
        "imprimatur publish t.csv -s s.json --epsilon=1 --yes && echo done now",
        "python -m bench.audit --quick",
        "imprimatur is a word like any other' here",
    ],
)
def test_commands_that_exist_are_none(line):
    assert fault_of(line) is None
