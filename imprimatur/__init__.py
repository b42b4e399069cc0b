"""The client of Imprimatur: `from imprimatur import Client`.

    import imprimatur

    synthetic = imprimatur.publish(frame, epsilon=3, schema=schema)

    with imprimatur.Client("http://127.0.0.1:8000", api_key) as client:
        print(client.datasets())

- `Client`, `AsyncClient`: one service and one API key; a method for every endpoint.
- `publish`: a DataFrame in, a synthetic DataFrame out. `schema_of_frame`: what its dtypes declare, and a draft of the rest.
- `Dataset`, `Release`, `Sample`: what a `Client` gives, and what can be asked of it next; `AsyncDataset`, `AsyncRelease`,
  `AsyncSample` of an `AsyncClient`.
- `QuerySession`, `Answer`: questions about private rows, and their answers.
- `Budget`, `Ledger`, `Quote`, `Forecast`, `Json`, …: what else the service answers.
- `ApiError`: what the service answered instead: status, code, a sentence. `imprimatur.errors` has a class for every code,
  such as `BudgetExhausted`.
- `NotPublished`: a release ended without anything to publish. `OrderedNotDelivered`: what came after an order failed.
- `NotAsCertified`: a downloaded ZIP is not the one that its certificate signs.
- `MissingExtra`: a package is missing that an extra installs.
- `SampleFormat`: the names of the formats that samples are written in.

What is here is imported when it is first asked for: the command line and the server need other parts of the package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from imprimatur.version import VERSION

if TYPE_CHECKING:
    from imprimatur.async_client import AsyncClient
    from imprimatur.async_objects import AsyncDataset, AsyncRelease, AsyncSample
    from imprimatur.client import Client
    from imprimatur.errors import ApiError, BudgetExhausted, MissingExtra, NotPublished, OrderedNotDelivered
    from imprimatur.forecasts import Forecast
    from imprimatur.frame_schemas import schema_of_frame
    from imprimatur.frames import publish
    from imprimatur.objects import Dataset, Release, Sample
    from imprimatur.queries import Answer, QuerySession
    from imprimatur.replies import Budget, Json, Ledger, Quote, SampleFormat
    from imprimatur.verify.members import NotAsCertified

__version__ = VERSION
__all__ = [
    "Answer",
    "ApiError",
    "AsyncClient",
    "AsyncDataset",
    "AsyncRelease",
    "AsyncSample",
    "Budget",
    "BudgetExhausted",
    "Client",
    "Dataset",
    "Forecast",
    "Json",
    "Ledger",
    "MissingExtra",
    "NotAsCertified",
    "NotPublished",
    "OrderedNotDelivered",
    "QuerySession",
    "Quote",
    "Release",
    "Sample",
    "SampleFormat",
    "__version__",
    "publish",
    "schema_of_frame",
]

_MODULES = {
    "AsyncClient": "async_client",
    **dict.fromkeys(("AsyncDataset", "AsyncRelease", "AsyncSample"), "async_objects"),
    "Client": "client",
    **dict.fromkeys(("ApiError", "BudgetExhausted", "MissingExtra", "NotPublished", "OrderedNotDelivered"), "errors"),
    "Forecast": "forecasts",
    "publish": "frames",
    "schema_of_frame": "frame_schemas",
    **dict.fromkeys(("Dataset", "Release", "Sample"), "objects"),
    "NotAsCertified": "verify.members",
    **dict.fromkeys(("Answer", "QuerySession"), "queries"),
}
"""Where a name is; all others are types of replies."""


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'imprimatur' has no attribute {name!r}")
    return getattr(importlib.import_module(f"imprimatur.{_MODULES.get(name, 'replies')}"), name)
