"""Every public function of the privacy mechanisms either states its contract or is listed as post-processing."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator

import pytest

import workers.mechanism

HEADINGS = ("Adjacency:", "Sensitivity:", "Shapes:", "Source:", "Edge cases:")
READS_NO_PRIVATE_VALUE = {
    "product_rounding": "public sizes",
    "drawn_std": "a public noise_std",
    "most_moved": "public sizes and sensitivities",
    "allocate": "public clip norms and sizes",
    "count_noise_stds": "public sizes",
    "geometric_grid": "public edges",
    "thresholds_from": "noisy histograms",
    "one_group": "noisy thresholds",
    "dbscan_groups": "noisy thresholds",
    "frequencies_from": "noisy counts",
    "root_above": "a public number",
    "squared_l2": "public bases and sizes",
    "l1": "public bases and sizes",
    "values_l2": "public bases and sizes",
    "values_l1": "public bases and sizes",
    "half_width": "a public sensitivity and epsilon",
    "threshold": "a public epsilon and failure probability",
}


def public_functions() -> Iterator[Callable[..., object]]:
    for module in pkgutil.walk_packages(workers.mechanism.__path__, "workers.mechanism."):
        loaded = importlib.import_module(module.name)
        for name, function in inspect.getmembers(loaded, inspect.isfunction):
            if function.__module__ == loaded.__name__ and not name.startswith("_"):
                yield function


@pytest.mark.parametrize("function", list(public_functions()), ids=lambda function: function.__name__)
def test_private_mechanisms_state_their_contract(function: Callable[..., object]) -> None:
    doc = inspect.getdoc(function) or ""
    if function.__name__ in READS_NO_PRIVATE_VALUE:
        assert doc
        return
    lines = [line.strip() for line in doc.splitlines()]
    found = [heading for line in lines for heading in HEADINGS if line.startswith(heading)]
    assert tuple(found) == HEADINGS


def test_the_list_of_exceptions_is_not_stale() -> None:
    assert set(READS_NO_PRIVATE_VALUE) <= {function.__name__ for function in public_functions()}
