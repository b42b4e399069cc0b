"""What starting the API and importing the client must not load; the times are measured by `python -m bench.start`."""

import subprocess
import sys

import pytest

LARGE = ("torch", "sklearn", "scipy", "dp_accounting", "numpy", "polars", "pyarrow", "onnxruntime", "alembic", "celery")
SERVICE = ("fastapi", "pydantic", "sqlalchemy", "psycopg", "cryptography", "obstore", "uvicorn")


ABSENT = {
    "imprimatur.client": (*LARGE, *SERVICE),
    "imprimatur.cli": (*LARGE, *SERVICE),
    "service.cli.local, service.cli.schemas": (*LARGE, *SERVICE),
    "service.http.app": LARGE,
    "service.upkeep.relay": tuple(name for name in LARGE if name not in {"alembic", "celery"}),
}
"""In this order: none may hold what is forbidden to one before it, so one interpreter imports them all."""


@pytest.fixture(scope="module")
def imported():
    """What one interpreter has loaded once it has imported these and all before."""
    code = "import sys\n" + "\n".join(f"import {modules}; print(*sys.modules)" for modules in ABSENT)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return dict(zip(ABSENT, map(str.split, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("module", ABSENT)
def test_large_libraries_are_not_imported(imported, module):
    assert set(imported[module]) & set(ABSENT[module]) == set()
    assert module.rpartition(", ")[2] in imported[module]


def test_a_lazy_module_is_imported_by_its_first_use_and_only_then():
    code = """
import sys
from service.base.lazy import lazy
late = lazy("colorsys")
assert "colorsys" not in sys.modules
assert late.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)
assert "colorsys" in sys.modules and late.rgb_to_hsv is sys.modules["colorsys"].rgb_to_hsv
try:
    late.nothing_of_this_name
except AttributeError:
    pass
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_samples_need_is_loaded_when_they_are_to_be_expected():
    code = """
import sys, time
import threading
from service.samples import cache
assert "onnxruntime" not in sys.modules
cache.expect_samples()
while any(thread.name == "expect-samples" for thread in threading.enumerate()):
    time.sleep(0.01)
assert {"polars", "pyarrow", "onnxruntime"} <= set(sys.modules) and "torch" not in sys.modules
import pyarrow, polars
polars.DataFrame(pyarrow.RecordBatch.from_arrays([pyarrow.array([1])], names=["a"])).write_csv()
assert "pandas" not in sys.modules  # pyarrow imports it with the first array, where it is installed
cache.expect_samples()
assert not any(thread.name == "expect-samples" for thread in threading.enumerate())
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pandas_can_still_be_asked_for_once_arrow_was_loaded_without_it():
    code = """
import importlib, sys
from service.samples import cache
cache.load_all_of_samples()
import pyarrow
frame = pyarrow.table({"a": [1, 2]}).to_pandas()
assert list(frame["a"]) == [1, 2] and "pandas" in sys.modules
assert pyarrow.array(frame["a"]).to_pylist() == [1, 2]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
