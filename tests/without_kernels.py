"""A processor that has no compiled loops."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from workers.numerics import kernels


@contextmanager
def without_kernels() -> Iterator[None]:
    """As on a machine without a compiler."""
    with patch.object(kernels, "_compiled", lambda: None):
        yield
