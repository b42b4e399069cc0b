"""The client of Imprimatur: `from imprimatur import Client`.

    import imprimatur

    with imprimatur.Client("http://127.0.0.1:8000", api_key) as client:
        print(client.datasets())

- `Client`: one service and one API key; a method for every endpoint.
- `publish`: a DataFrame in, a synthetic DataFrame out.
- `ApiError`: what the service answered instead: status, code, a sentence.
- `NotAsCertified`: a downloaded ZIP is not the one that its certificate signs.
- `NotPublished`: a release ended without anything to publish.
- `MissingExtra`: a package is missing that an extra installs.
- `Dataset`, `Budget`, `Ledger`, `Quote`, `Release`, `Json`: what the service answers, as types.
- `SampleFormat`: the names of the formats that samples are written in.

What is here is imported when it is first asked for: the command line and the server need other parts of the package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from imprimatur.version import VERSION

if TYPE_CHECKING:
    from imprimatur.client import Client
    from imprimatur.errors import ApiError, MissingExtra, NotPublished
    from imprimatur.frames import publish
    from imprimatur.replies import Budget, Dataset, Json, Ledger, Quote, Release, SampleFormat
    from imprimatur.verify.members import NotAsCertified

__version__ = VERSION
__all__ = [
    "ApiError",
    "Budget",
    "Client",
    "Dataset",
    "Json",
    "Ledger",
    "MissingExtra",
    "NotAsCertified",
    "NotPublished",
    "Quote",
    "Release",
    "SampleFormat",
    "__version__",
    "publish",
]

_MODULES = {
    "Client": "client",
    **dict.fromkeys(("ApiError", "MissingExtra", "NotPublished"), "errors"),
    "publish": "frames",
    "NotAsCertified": "verify.members",
}
"""Where a name is; all others are types of replies."""


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'imprimatur' has no attribute {name!r}")
    return getattr(importlib.import_module(f"imprimatur.{_MODULES.get(name, 'replies')}"), name)
