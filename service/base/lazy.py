"""Large libraries that are imported when something of them is first asked for, so that a process starts in a second.

if TYPE_CHECKING:
import polars as pl
else:
pl = lazy("polars")
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class _Lazy(ModuleType):
    """Stands where the module will be. Python's import lock lets two threads that ask at once share one import."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # tools that look at every module do not want this one
            raise AttributeError(name)
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value


def lazy(name: str) -> Any:
    """The module of this name, not imported yet."""
    return _Lazy(name)
