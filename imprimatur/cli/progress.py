"""Bars while something takes long; nothing where no person watches."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from imprimatur.cli.output import Failure, notes
from imprimatur.errors import NotPublished
from imprimatur.progress import bar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from imprimatur.client import Client
    from imprimatur.replies import Release


def follow(client: Client, release_id: str) -> Release:
    """Wait for the release behind a progress bar; a failed or voided one is a `Failure`."""
    with bar(shown=sys.stderr.isatty(), console=notes()) as report:
        release = client.wait(release_id, on_progress=report)
    if release["state"] != "published":
        raise Failure(str(NotPublished(release)), code=f"release_{release['state']}")
    return release


@contextmanager
def upload_bar() -> Iterator[Callable[[str, float], None] | None]:
    """A bar for the way of a file: uploading, reading, storing."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<12}"), BarColumn(bar_width=40), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=notes()) as progress:
        task = progress.add_task("uploading", total=1.0)
        yield lambda phase, share: progress.update(
            task, description=phase, completed=share, total=None if phase == "storing" else 1.0
        )


@contextmanager
def byte_count(what: str) -> Iterator[Callable[[int], None] | None]:
    """A running count of bytes written."""
    if not sys.stderr.isatty():
        yield None
        return
    with notes().status(what) as status:
        yield lambda size: status.update(f"{what}: {size / 1e6:.1f} MB")
