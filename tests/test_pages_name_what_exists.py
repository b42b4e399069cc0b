"""Whatever the pages name in backticks, a file, a module, a function or a test, exists."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("bench", "docs", "examples", "imprimatur", "migrations", "service", "supply", "tests", "workers")
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "log.md"]  # which speaks of what was
PATH = re.compile(rf"(?:{'|'.join(ROOMS)})(?:/[\w.<>*{{}},|-]+)+/?")
FILE = re.compile(r"[\w-]+\.(?:py|c|h|toml|yml)")
DOTTED = re.compile(rf"(?<![\w/.])(?:{'|'.join(ROOMS)})(?:[.:](?!py\b)[A-Za-z_]\w*)+")
TEST = re.compile(r"test_\w+")
OF_A_BUNDLE = {"sample.py"}
NO_MODULES = {"imprimatur.commands"}
"""A group of entry points."""


@lru_cache
def files() -> frozenset[str]:
    """What git knows, and what is new beside it."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return frozenset(name for name in listed.stdout.splitlines() if (ROOT / name).exists())


def quoted(page: Path) -> list[str]:
    """Words in backticks, without blocks of code and without files of a named commit."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`\n]+` of commit \w+", "", text)
    return re.findall(r"`([^`\n]+)`", text)


def is_there(path: str) -> bool:
    """A path of the repository; <name>, NAME and * stand for any name."""
    pattern = re.sub(r"<\w+>|\bNAME\b", "*", path.rstrip("/"))
    return any(ROOT.glob(pattern)) if "*" in pattern else (ROOT / pattern).exists()


@lru_cache
def names_in(file: Path) -> dict[str, frozenset[str]]:
    """Names at the top of a module, and what each class has."""
    named: dict[str, frozenset[str]] = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        inner = frozenset(_bound(node.body)) if isinstance(node, ast.ClassDef) else frozenset()
        named |= dict.fromkeys(_bound([node]), inner)
    return named


def _bound(nodes: list[ast.stmt]) -> list[str]:
    names = []
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names += [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            names += [target.id for target in targets if isinstance(target, ast.Name)]
    return names


def resolves(dotted: str) -> bool:
    """A module, what is in it, and what is in a class of it."""
    place, parts = ROOT, re.split("[.:]", dotted)
    while parts and (place / parts[0]).is_dir():
        place = place / parts.pop(0)
    if not parts:
        return True
    module = place / "__init__.py"
    if (place / f"{parts[0]}.py").is_file():
        module = place / f"{parts.pop(0)}.py"
    if not parts:
        return True
    known = names_in(module) if module.is_file() else {}
    return parts[0] in known and (len(parts) == 1 or (len(parts) == 2 and parts[1] in known[parts[0]]))


@lru_cache
def known_tests() -> frozenset[str]:
    named = set()
    for file in (ROOT / "tests").rglob("test_*.py"):
        named |= {file.stem, *names_in(file)}
    return frozenset(named)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_exists(page: Path) -> None:
    missing = []
    for words in quoted(page):
        paths = [found.rstrip(".,") for found in PATH.findall(words)]
        missing += [path for path in paths if not is_there(path)]
        missing += [name for name in DOTTED.findall(words) if name not in NO_MODULES and not resolves(name)]
        missing += [name for name in TEST.findall(words) if name not in known_tests()]
        alone = FILE.fullmatch(words)
        if alone and words not in OF_A_BUNDLE and words not in {Path(name).name for name in files()}:
            missing.append(words)
    assert not missing, f"{page.relative_to(ROOT)} names what is not there: {missing}"


def rooms_on_the_page() -> dict[str, set[str]]:
    """Room -> the rooms that the table of docs/architecture.md lets it import; where it lists all of them."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {}
    for room, cell in re.findall(r"^\| `((?:service|workers)/\w+)` \|[^|]*\|([^|]*)\|$", page, re.MULTILINE):
        top = room.split("/")[0]
        named = re.findall(r"`([\w.]+)`", cell)
        rooms[room.replace("/", ".")] = {
            name if "." in name or name == "imprimatur" else f"{top}.{name}" for name in named
        }
    return rooms


def imported_by(room: str) -> set[str]:
    """Rooms that the modules of a room import, wherever in the module."""
    found = set()
    for file in (ROOT / room.replace(".", "/")).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
    tops = {module: module.split(".") for module in found}
    return {
        "imprimatur" if parts[0] == "imprimatur" else ".".join(parts[:2])
        for parts in tops.values()
        if parts[0] in {"imprimatur", "service", "workers"}
    } - {room, "service.base"}


def test_the_table_of_rooms_says_what_each_imports() -> None:
    listed = rooms_on_the_page()
    there = {
        f"{top}.{path.name}"
        for top in ("service", "workers")
        for path in (ROOT / top).iterdir()
        if (path / "__init__.py").exists()
    }
    assert set(listed) == there
    for room in there - {"workers.methods"}:  # which may import all of workers
        assert imported_by(room) == listed[room], room


def test_names_that_do_not_exist_are_found() -> None:
    assert is_there("service/methods/<name>/order.py")
    assert not is_there("service/methods/<name>/orders.py")
    assert resolves("service.releases.service.order_release")
    assert resolves("workers.plan.Plan.take")
    assert not resolves("service.releases.service.take_order")
    assert not resolves("workers.plan.Plan.give")
    assert not resolves("workers.plans")
