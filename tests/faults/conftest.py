"""Services to break: never the shared `stack`, always one of the test's own."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bench.faults.stack import FaultyStack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="session")
def shared() -> Iterator[FaultyStack]:
    """Two workers, two connections a process; a test that breaks it leaves it as it was."""
    with tempfile.TemporaryDirectory(prefix="imprimatur-faults-") as folder:
        Path(folder).chmod(0o755)
        with FaultyStack(Path(folder), workers=2, database_pool_size=2) as stack:
            yield stack


@pytest.fixture
def faulty() -> Iterator[Callable[..., FaultyStack]]:
    """Starts services with kill points; they are gone after the test."""
    with ExitStack() as exits:

        def start(folder: Path | None = None, **options: Any) -> FaultyStack:
            if folder is None:
                folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="imprimatur-faults-")))
            folder.chmod(0o755)
            return exits.enter_context(FaultyStack(folder, **options))

        yield start
