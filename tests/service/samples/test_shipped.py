"""`sample.py` of a table bundle: one file made of the sampler's modules, which a stranger runs with numpy and onnxruntime."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_generators import MIXED, tiny_files, tiny_sampler

import service.samples.table
from service.samples.shipped import MODULES, CannotJoinError, joined, table_script
from service.samples.streams import stream_rows

ROOT = Path(service.samples.table.__file__).parents[3]
ONLY = """
import builtins, sys
allowed, original = {"numpy", "onnxruntime"}, builtins.__import__
def only(name, globals=None, locals=None, fromlist=(), level=0):
    top, asking = name.partition(".")[0], (globals or {}).get("__name__", "")
    if asking == "__main__" and top not in allowed and top not in sys.stdlib_module_names:
        raise ImportError(f"sample.py imports {name}")
    return original(name, globals, locals, fromlist, level)
builtins.__import__ = only
import runpy
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
assert not {"service", "workers", "imprimatur"} & set(sys.modules)
"""


@pytest.fixture
def alone(tmp_path):
    """Runs sample.py in a folder that holds nothing but the generator."""
    config, onnx_bytes = tiny_files()
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "generator.onnx").write_bytes(onnx_bytes)
    (tmp_path / "sample.py").write_bytes(table_script())

    def run(*arguments):
        command = [sys.executable, "-I", "-c", ONLY, "sample.py", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)

    return run


def test_every_module_is_part_of_it():
    files = {path.stem for path in Path(service.samples.table.__file__).parent.glob("*.py")}
    assert files == {*MODULES, "__init__"}


def test_it_parses_for_python_3_10_and_imports_numpy_and_onnxruntime_only():
    tree = ast.parse(table_script(), feature_version=(3, 10))
    imported = {alias.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    imported |= {(n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert imported - set(sys.stdlib_module_names) == {"numpy", "onnxruntime"}
    lines = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
    assert max(lines) < min(n.lineno for n in tree.body[1:] if not isinstance(n, ast.Import | ast.ImportFrom))
    assert ast.get_docstring(tree).startswith("Draws synthetic rows")


def test_it_is_as_tidy_as_its_modules(tmp_path):
    """No name is undefined, defined twice or imported in vain, and no line is where a person would not put it."""
    path = tmp_path / "sample.py"
    path.write_bytes(table_script())
    configured = ["--config", ROOT / "pyproject.toml"]
    for command in (["check", "--select", "F,I,E", "--ignore", "E501", *configured], ["format", "--diff", *configured]):
        done = subprocess.run([sys.executable, "-m", "ruff", *command, path], capture_output=True, check=False)
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


def test_it_gives_the_rows_of_the_service_byte_for_byte(alone):
    drawn = alone("--rows", "3000", "--seed", "7")
    assert drawn.returncode == 0, drawn.stderr.decode()
    assert drawn.stdout == "".join(tiny_sampler().csv(3_000, seed=7)).encode()
    lines = alone("--rows", "3000", "--seed", "7", "--format", "jsonl", "--where", "rank:2")
    assert lines.stdout == "".join(tiny_sampler().jsonl(3_000, seed=7, where={"rank": 2})).encode()
    served = b"".join(stream_rows(tiny_sampler(), rows=3_000, seed=7, where="rank:2", format="jsonl"))
    names = [field["name"] for field in MIXED["fields"]]
    assert [list(json.loads(line)) for line in served.splitlines()] == [names] * 3_000
    assert [json.loads(line) for line in lines.stdout.splitlines()] == [json.loads(x) for x in served.splitlines()]


def test_a_wrong_request_says_why(alone):
    refused = alone("--where", "colour:red")
    assert refused.returncode == 2
    assert b"there is no column 'colour'" in refused.stderr
    assert b"Traceback" not in refused.stderr


def test_another_process_makes_the_same_bytes():
    code = "import sys; from service.samples.shipped import table_script; sys.stdout.buffer.write(table_script())"
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        )
        assert done.stdout == table_script()


FIRST = '"""First."""\n\nimport json\n\nA = 1\n'


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ('"""Second."""\n\nA = 2\n', "both define A"),
        ('"""Second."""\n\njson = 2\n', "imports and another defines json"),
        ('"""Second."""\n\nfrom service.samples.table.third import B\n\nC = B\n', "does not come before"),
        ('"""Second."""\n\nfrom service.samples.table.first import A as B\n\nC = B\n', "renames"),
        ('"""Second."""\n\nfrom service.base.errors import A\n\nC = A\n', "does not come before"),
        ('"""Second."""\n\nimport service.base\n\nC = service\n', "does not come before"),
        ('"""Second."""\n\nC = 1\n\nimport os\n', "stand at the top"),
        ('"""Second."""\n\ndef f():\n    import os\n', "stand at the top"),
    ],
)
def test_modules_that_cannot_be_joined_are_refused(second, words):
    assert "A = 1" in joined({"first": FIRST})
    with pytest.raises(CannotJoinError, match=words):
        joined({"first": FIRST, "second": second})
