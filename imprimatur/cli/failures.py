"""Expected errors as the end of a command: a sentence and an exit code; anything else is a bug and keeps its traceback."""

from __future__ import annotations

from imprimatur.cli import server
from imprimatur.cli.output import Exit, Failure

EXTRAS = {
    "cryptography": "imprimatur[verify]",
    "pydantic": "imprimatur[registry]",
    "yaml": "imprimatur[registry]",
    "adbc_driver_manager": "imprimatur[sources]",
    "adbc_driver_postgresql": "imprimatur[sources]",
    "duckdb": "imprimatur[sources]",
    "obstore": "imprimatur[sources]",
    "pyarrow": "imprimatur[sources]",
    "httpx": "imprimatur",
    "rich": "imprimatur",
    "torch": "imprimatur-server[worker]",
    "scipy": "imprimatur-server[worker]",
    "onnx": "imprimatur-server[worker]",
}
"""By the package that is not there: what brings it."""
OWN = {"imprimatur", "service", "workers", "migrations"}


def expected(error: BaseException) -> Failure | None:
    """The error as the end of a command, or None for an unexpected one."""
    if isinstance(error, Failure):
        return error
    from imprimatur.errors import ApiError, MissingExtra
    from imprimatur.verify.members import NotAsCertified

    if isinstance(error, ApiError):
        return Failure.of(error)
    if isinstance(error, NotAsCertified):
        return Failure(f"{error}. Nothing was saved: try again, and tell the operator", code="not_as_certified")
    if isinstance(error, MissingExtra | ModuleNotFoundError):
        return _missing(error)
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return Failure(f"{where}{error.strerror}", Exit.BAD_INPUT, "invalid_input")
    here = server.installed() if isinstance(error, Exception) else None
    return None if here is None or not isinstance(error, Exception) else here.failure_of(error)


def _missing(error: ImportError) -> Failure | None:
    """One line that says what to install; None where one of our own modules is missing, which is a bug."""
    if not isinstance(error, ModuleNotFoundError):
        return Failure(str(error), code="not_installed")
    package = (error.name or "").partition(".")[0]
    if not package or package in OWN:
        return None
    brings = EXTRAS.get(package, "imprimatur-server[embedded,worker]")
    return Failure(f"this needs the package {package}: pip install '{brings}'", code="not_installed")
