"""The size of the production code: lines of modules, lines and decisions of functions, circles of imports. Parameters are ruff's (PLR0913)."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PRODUCTION = ("service", "workers", "imprimatur", "migrations")
MOST_LINES_OF_A_MODULE = 400
MOST_LINES_OF_A_FUNCTION = 60
MOST_COMPLEX = 15
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DECISIONS = (ast.If, ast.For, ast.While, ast.AsyncFor, ast.IfExp, ast.ExceptHandler, ast.comprehension, ast.match_case)


def sources():
    return [path for folder in PRODUCTION for path in sorted((ROOT / folder).rglob("*.py"))]


def complexity(function):
    """One and every decision: branches, loops, handlers, cases, conditions joined by and or or, and loops of comprehensions."""
    nodes = list(ast.walk(function))
    joined = sum(len(node.values) - 1 for node in nodes if isinstance(node, ast.BoolOp))
    return 1 + sum(isinstance(node, DECISIONS) for node in nodes) + joined


def lines(function):
    """Its signature included, its decorators not."""
    return function.end_lineno - function.lineno + 1


def above(source, measure, limit):
    """The functions of a module for which `measure` gives more."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, FUNCTIONS)]
    return {node.name: measure(node) for node in functions if measure(node) > limit}


@pytest.mark.parametrize("folder", PRODUCTION)
def test_no_module_and_no_function_is_too_long_or_too_complex(folder):
    found = {}
    for path in sources():
        name, source = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        if not name.startswith(f"{folder}/"):
            continue
        if len(source.splitlines()) > MOST_LINES_OF_A_MODULE:
            found[name] = len(source.splitlines())
        for measure, limit in ((lines, MOST_LINES_OF_A_FUNCTION), (complexity, MOST_COMPLEX)):
            many = above(source, measure, limit)
            found |= {f"{name}: {function}: {measure.__name__}": value for function, value in many.items()}
    assert found == {}


def test_what_is_above_a_limit_is_found():
    source = "def f(a):\n    def g():\n        x = 1\n        return x\n    return [g for b in a if b and a or b]\n"
    assert above(source, lines, 3) == {"f": 5}
    assert above(source, complexity, 1) == {"f": 4}


def imports_between(modules):
    """Of every module, the modules among these that it imports, for types and inside functions too."""
    found = {}
    for name, path in modules.items():
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        wanted = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module:
                of_it = [f"{node.module}.{alias.name}" for alias in node.names]
                wanted += [one if one in modules else node.module for one in of_it]
        found[name] = {one for one in wanted if one in modules and one != name}
    return found


def in_circles(imports):
    """The modules that are left when those that import none of the rest, or are imported by none, are taken away again and again."""
    left = dict(imports)
    while True:
        imported = set().union(*left.values()) if left else set()
        kept = {
            name: wanted & left.keys() for name, wanted in left.items() if wanted & left.keys() and name in imported
        }
        if kept == left:
            return set(left)
        left = kept


def test_no_module_imports_itself_by_way_of_others():
    modules = {
        path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__"): path
        for path in sources()
    }
    circles = in_circles(imports_between(modules))
    assert set(circles) == set()


def test_a_circle_is_found():
    assert in_circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}) == {"b", "c"}
