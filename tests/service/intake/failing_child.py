"""A reading process that fails in an unforeseen way, with a cell in the error's text."""

from typing import Any

from service.intake import child, sandbox
from service.intake.sealed import SealedFile


def _fail(document: dict[str, Any]) -> dict[str, Any]:
    raise ZeroDivisionError(SealedFile.handed_over(document["upload"]).read_at(0, 100))


def main(begun: sandbox.Begun) -> None:
    child.main(begun, _fail)
