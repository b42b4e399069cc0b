"""The `sample.py` of bundles: for tables the modules of `service.samples.table`, joined into one file that runs alone."""

from __future__ import annotations

import ast
import functools
import sys
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PACKAGE = "service.samples.table"
MODULES = (
    "service.base.messages",
    "base",
    "spelling",
    "reading",
    "columns",
    "ranges",
    "service.domain.arithmetic",
    "hierarchies",
    "identifiers",
    "written",
    "relations",
    "network",
    "blocks",
    "dealing",
    "balancing",
    "intervals",
    "selections",
    "exclusions",
    "components",
    "typed_numbers",
    "condition_texts",
    "conditions",
    "conditional",
    "weighting",
    "completing",
    "sampler",
    "command_line",
)
"""Each after those it imports; of another package, by its whole name. The last one says in its docstring what the file is for."""
MODULES_OF_IMAGES = ("service.base.messages", "service.samples.image_sampler")


class CannotJoinError(Exception):
    """A module is not of the form that can be joined; the message says what to change."""


@functools.cache
def table_script() -> bytes:
    """The file, always the same bytes."""
    return joined({name: _source(name) for name in MODULES}).encode()


@functools.cache
def image_script() -> bytes:
    """The file of image bundles."""
    return joined({name: _source(name) for name in MODULES_OF_IMAGES}).encode()


def _source(name: str) -> str:
    package, _, module = name.rpartition(".")
    return resources.files(package or PACKAGE).joinpath(f"{module}.py").read_text(encoding="utf-8")


def joined(sources: Mapping[str, str]) -> str:
    """One module of several, by name and each after those it imports; the docstring is the last one's."""
    outside: set[str] = set()
    parts: list[str] = []
    module_of: dict[str, str] = {}
    docstring = ""
    for module, source in sources.items():
        tree = ast.parse(source, module)
        docstring = ast.get_docstring(tree, clean=False) or ""
        end, imports = _imports(tree, module, module_of)
        outside |= imports
        for name in _defined(tree):
            if name in module_of:
                raise CannotJoinError(f"{module_of[name]} and {module} both define {name}: rename one of them")
            module_of[name] = module
        body = "\n".join(source.splitlines()[end:]).strip("\n")
        space = "\n" if body.startswith(("class ", "def ", "@")) else ""
        parts.append(f"# ---- {module}: {docstring.splitlines()[0]}\n{space}\n{body}\n")
    if clash := module_of.keys() & {line.split()[-1] for line in outside}:
        raise CannotJoinError(f"one module imports and another defines {', '.join(sorted(clash))}: rename the latter")
    head = f'"""{docstring}"""\n\nfrom __future__ import annotations\n\n{_in_order(outside)}\n'
    return head + "\n" + "\n\n".join(parts)


def _imports(tree: ast.Module, module: str, module_of: Mapping[str, str]) -> tuple[int, set[str]]:
    """The line on which the imports end, and those of other packages, one name each."""
    first = next(node for node in tree.body[1:] if not isinstance(node, ast.Import | ast.ImportFrom))
    end, outside = 1, set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if node.lineno > first.lineno:
            raise CannotJoinError(f"{module}, line {node.lineno}: imports stand at the top of the module")
        end = max(end, node.end_lineno or node.lineno)
        origin = node.module or "" if isinstance(node, ast.ImportFrom) else ""
        for name in node.names:
            if not (origin or name.name).startswith("service"):
                outside.add(f"from {origin} import {ast.unparse(name)}" if origin else f"import {ast.unparse(name)}")
            elif name.asname or module_of.get(name.name) != origin.removeprefix(f"{PACKAGE}."):
                raise CannotJoinError(
                    f"{module} imports {name.name} from {origin}, which does not come before it, or renames it"
                )
    return end, outside - {"from __future__ import annotations"}


def _defined(tree: ast.Module) -> Iterator[str]:
    """The names that a module defines."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def _in_order(imports: set[str]) -> str:
    """As a person would sort them: the standard library, then the others; names of one module on one line."""
    by_module: dict[str, list[str]] = {}
    for line in sorted(imports):
        start, _, names = line.rpartition("import ")
        by_module.setdefault(start or line, []).append(names)
    lines = [
        f"{start}import {', '.join(names)}" if start.startswith("from") else start for start, names in by_module.items()
    ]

    def is_other(line: str) -> bool:
        return line.split()[1].partition(".")[0] not in sys.stdlib_module_names

    lines.sort(key=lambda line: (is_other(line), line.startswith("from"), line))
    return "\n\n".join("\n".join(line for line in lines if is_other(line) is other) for other in (False, True))
