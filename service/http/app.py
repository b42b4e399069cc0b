"""`create_app()`: the one place where HTTP is put together. Starts without torch, in about a second."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from anyio import CapacityLimiter
from fastapi import FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from imprimatur.version import VERSION
from service.audit.endpoints import router as audit
from service.audit.service import Refusals
from service.auth.dependencies import ContextOf
from service.auth.endpoints import router as keys
from service.auth.limits import RateLimits
from service.auth.principal import Principal
from service.base.errors import Unavailable
from service.base.memory import use_few_arenas
from service.datasets.endpoints import router as datasets
from service.http.methods import router as methods
from service.http.openapi import DocumentedApp
from service.http.quick_routes import QuickRoutes, QuickThreads
from service.ledger.endpoints import router as ledger
from service.pages.endpoints import router as pages
from service.platform.context import Context, open_context
from service.platform.outbox import seconds_since_beat
from service.platform.settings import Settings
from service.releases.endpoints import router as releases
from service.releases.publish import router as publish
from service.releases.repository import any_published
from service.releases.watching import Watching
from service.requests import problems as http_errors
from service.requests.uploads import BodyLimit
from service.samples.cache import SamplerCache, expect_samples
from service.samples.drawing_threads import DrawingThreads

READY_SECONDS = 30.0
"""A part that has not beaten for this long is not ready."""

AUDITED_REFUSALS = (403, 404, 409, 410)
"""Refusals of good keys. Requests without one belong to no tenant; /metrics counts them."""

DESCRIPTION = """
Upload a table once, give it a privacy budget, and order synthetic releases from it. A ledger refuses whatever would
exceed the budget. Every reply is public, post-processing, or meant for the owner alone.
"""


def create_app(settings: Settings | None = None) -> FastAPI:
    """The HTTP application on one context."""
    use_few_arenas()
    context = open_context(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, float]]:
        # The first price of a process imports scipy and friends, a first sample polars and friends; not while one waits.
        threading.Thread(target=_warm_up, args=(context,), daemon=True).start()
        yield {"request_head_seconds": context.settings.request_head_seconds}  # for service.http.protocol
        app.state.quick_threads.close()

    app = DocumentedApp(
        title="Imprimatur",
        version=VERSION,
        description=DESCRIPTION,
        lifespan=lifespan,
    )
    app.state.context = context
    app.state.samplers = SamplerCache(context.storage.get)
    app.state.drawing = DrawingThreads()
    app.state.watching = Watching(context)
    app.state.quick_threads = QuickThreads(context.settings.database_pool_size)
    app.state.ingest_slots = CapacityLimiter(context.settings.ingest_processes)
    app.state.rate_limits = RateLimits(context.settings)
    app.add_middleware(QuickRoutes, routers=(datasets, releases))  # the first added is the innermost
    app.add_middleware(BodyLimit, settings=context.settings)
    http_errors.install(app, refused=_audited(Refusals(context)))
    _install_metrics(app)
    for router in (datasets, methods, releases, publish, ledger, keys, audit, pages):
        app.include_router(router)
    _install_probes(app)
    return app


def _audited(refusals: Refusals) -> Callable[[Request, int, str], None]:
    def refused(request: Request, status: int, code: str) -> None:
        principal: Principal | None = getattr(request.state, "principal", None)
        if principal is None or status not in AUDITED_REFUSALS:
            return
        kind, object_id = None, None
        for name, value in request.path_params.items():
            with suppress(ValueError):
                kind, object_id = name.removesuffix("_id"), uuid.UUID(str(value))
        with suppress(Unavailable):  # the refusal stands, and is answered, without a database
            refusals.record(principal, kind, object_id, code)

    return refused


class Readiness(BaseModel):
    """Whether orders are carried out now, and which part is missing."""

    ready: bool
    parts: dict[str, str]


def _install_probes(app: FastAPI) -> None:
    @app.get("/healthz", tags=["probes"])
    def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["probes"], responses={503: {"model": Readiness, "description": "Not ready yet."}})
    def readyz(context: ContextOf, response: Response) -> Readiness:
        """200 once database, relay and a consuming worker are there; 503 before."""
        parts = _parts(context)
        ready = all(state == "ok" for state in parts.values())
        response.status_code = 200 if ready else 503
        return Readiness(ready=ready, parts=parts)


def _parts(context: Context) -> dict[str, str]:
    try:
        with context.transaction() as session:
            ages = {part: seconds_since_beat(session, part) for part in ("relay", "worker")}
    except Unavailable:
        return {"api": "ok", "database": "down", "relay": "unknown", "worker": "unknown"}
    beats = {part: "ok" if age is not None and age < READY_SECONDS else "quiet" for part, age in ages.items()}
    return {"api": "ok", "database": "ok", **beats}


UPLOADS = {
    ("POST", "/v1/datasets"),
    ("POST", "/v1/publish"),
    ("PUT", "/v1/datasets/{dataset_id}/declaration"),
}
ROWS_DECIDE = {200, 201, 202, 409, 422}
"""Of an upload, whose rows may be refused for what they are: which of these it was, is told to the sender alone."""


METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
"""Any other word would be a series of its own for ever."""


class Measure:
    """Counts requests and times their first byte, by route pattern: an id in a label would be a series for ever.

    Outermost, so it also gives every request its id.
    """

    def __init__(self, app: ASGIApp, registry: CollectorRegistry) -> None:
        self.app = app
        self.ids = random.Random()  # noqa: S311 - unique, not secret; the system's source is a call into the kernel each
        labels = ("method", "route")
        self.requests = Counter(
            "imprimatur_http_requests_total", "Requests answered.", (*labels, "status"), registry=registry
        )
        self.seconds = Histogram("imprimatur_http_seconds", "Time to the first byte.", labels, registry=registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.monotonic()
        request_id = scope.setdefault("state", {})["request_id"] = uuid.UUID(int=self.ids.getrandbits(128), version=4)

        async def measured(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", str(request_id).encode())]
                method = scope["method"] if scope["method"] in METHODS else "other"
                route = getattr(scope.get("route"), "path", "unmatched")
                is_secret = (method, route) in UPLOADS and message["status"] in ROWS_DECIDE
                self.requests.labels(method, route, "answered" if is_secret else message["status"]).inc()
                self.seconds.labels(method, route).observe(time.monotonic() - began)
            await send(message)

        await self.app(scope, receive, measured)


def _install_metrics(app: FastAPI) -> None:
    registry = CollectorRegistry()
    app.add_middleware(Measure, registry=registry)

    content = {"text/plain": {"schema": {"type": "string"}}}

    @app.get("/metrics", tags=["probes"], response_class=Response, responses={200: {"content": content}})
    def metrics() -> Response:
        """Prometheus: counts and times of requests by route; nothing about any dataset."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


def _warm_up(context: Context) -> None:
    from service.methods.marginals.order import MarginalsOrder  # noqa: PLC0415 - the point is to do it off the start-up path
    from service.methods.pricing import price_order  # noqa: PLC0415
    from service.privacy.filters import open_budget  # noqa: PLC0415

    price_order(MarginalsOrder(method="marginals", epsilon=1.0, pairs="all"), open_budget(1.0, 1e-5))
    with suppress(Unavailable, SQLAlchemyError), context.statement() as session:
        if any_published(session):
            expect_samples()
