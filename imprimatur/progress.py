"""A bar while a release is made: in terminals, and in notebooks; nothing where no person watches."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from imprimatur.replies import Release

    Report = Callable[[Release], None]


@contextmanager
def bar(*, shown: bool | None, console: Any = None) -> Iterator[Report]:
    """What is to be told of every state of a release. `shown`: None means where somebody watches. `console`: of rich."""
    notebook = _is_notebook()
    if shown is False or (shown is None and not (notebook or sys.stderr.isatty())):
        yield lambda _: None
    elif notebook:  # where rich would need ipywidgets
        yield _bar_of_a_notebook()
    else:
        with _rich_bar(console) as report:
            yield report


@contextmanager
def _rich_bar(console: Any) -> Iterator[Report]:
    from rich.console import Console  # noqa: PLC0415 - the client itself starts without rich
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(bar_width=40),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console or Console(stderr=True, highlight=False)) as progress:
        task = progress.add_task("queued", total=None)

        def report(release: Release) -> None:
            words, done, steps = _at(release)
            progress.update(task, description=words, completed=done, total=steps)

        yield report


def _bar_of_a_notebook() -> Report:
    """One output that is replaced, by what every notebook has: a bar of HTML, and a line where no HTML is shown."""
    display: Any = import_module(
        "IPython.display"
    ).display  # there is no IPython but in notebooks, nor are there its types
    shown: list[Any] = []

    def report(release: Release) -> None:
        words, done, steps = _at(release)
        text = words if steps is None else f"{words}: {done} of {steps}"
        place = "" if steps is None else f' value="{done}" max="{steps}"'
        line = {"text/plain": text, "text/html": f"<progress{place}></progress> {escape(text)}"}
        if shown:
            shown[0].update(line, raw=True)
        else:
            shown.append(display(line, raw=True, display_id=True))  # type: ignore[no-untyped-call,unused-ignore]

    return report


def _at(release: Release) -> tuple[str, int, int | None]:
    """In words, and how many steps of how many are done."""
    steps = release.stage.steps or None
    done = (steps or 0) if release.state == "published" else release.stage.step
    return release.state if release.has_ended else release.stage.phase or release.state, done, steps


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"
