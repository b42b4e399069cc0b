"""`create_app()`: the one place where HTTP is put together. Starts without torch, in about a second."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import http_errors
from service.auth.endpoints import router as keys
from service.context import Context, open_context
from service.datasets.endpoints import router as datasets
from service.dependencies import ContextOf
from service.errors import Unavailable
from service.outbox import seconds_since_beat
from service.pages.endpoints import router as pages
from service.releases.endpoints import router as releases
from service.releases.publish import router as publish
from service.releases.sampling import SamplerCache
from service.settings import Settings
from service.uploads import BodyLimit
from service.version import VERSION

READY_SECONDS = 30.0
"""A part that has not beaten for this long is not ready."""

DESCRIPTION = """
Upload a table once, give it a privacy budget, and order synthetic releases from it. A ledger refuses whatever would
exceed the budget. Every reply is public, post-processing, or meant for the owner alone.
"""


def create_app(settings: Settings | None = None) -> FastAPI:
    """The HTTP application on one context."""
    context = open_context(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # The first price of a process imports scipy and friends; do it while nobody waits.
        threading.Thread(target=_warm_up, daemon=True).start()
        yield

    app = FastAPI(
        title="Imprimatur",
        version=VERSION,
        description=DESCRIPTION,
        lifespan=lifespan,
        responses=http_errors.OPENAPI_RESPONSES,
    )
    app.state.context = context
    app.state.samplers = SamplerCache(context.storage.get)
    app.add_middleware(BodyLimit, upload_limit_bytes=context.settings.upload_limit_bytes)
    http_errors.install(app)
    _install_metrics(app)
    for router in (datasets, releases, publish, keys, pages):
        app.include_router(router)
    _install_probes(app)
    return app


def _install_probes(app: FastAPI) -> None:
    @app.get("/healthz", tags=["probes"])
    def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["probes"], responses={503: {"description": "Not ready yet; says which part."}})
    def readyz(context: ContextOf) -> JSONResponse:
        """200 once database, relay and a consuming worker are there; 503 before."""
        parts = _parts(context)
        ready = all(state == "ok" for state in parts.values())
        return JSONResponse({"ready": ready, "parts": parts}, 200 if ready else 503)


def _parts(context: Context) -> dict[str, str]:
    try:
        with context.transaction() as session:
            ages = {part: seconds_since_beat(session, part) for part in ("relay", "worker")}
    except Unavailable:
        return {"api": "ok", "database": "down", "relay": "unknown", "worker": "unknown"}
    beats = {part: "ok" if age is not None and age < READY_SECONDS else "quiet" for part, age in ages.items()}
    return {"api": "ok", "database": "ok", **beats}


class Measure:
    """Counts requests and times their first byte, by route pattern: an id in a label would be a series for ever."""

    def __init__(self, app: ASGIApp, registry: CollectorRegistry) -> None:
        self.app = app
        labels = ("method", "route")
        self.requests = Counter(
            "imprimatur_http_requests_total", "Requests answered.", (*labels, "status"), registry=registry
        )
        self.seconds = Histogram("imprimatur_http_seconds", "Time to the first byte.", labels, registry=registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.monotonic()

        async def measured(message: Message) -> None:
            if message["type"] == "http.response.start":
                method, route = scope["method"], getattr(scope.get("route"), "path", "unmatched")
                self.requests.labels(method, route, message["status"]).inc()
                self.seconds.labels(method, route).observe(time.monotonic() - began)
            await send(message)

        await self.app(scope, receive, measured)


def _install_metrics(app: FastAPI) -> None:
    registry = CollectorRegistry()
    app.add_middleware(Measure, registry=registry)

    @app.get("/metrics", tags=["probes"], response_class=Response)
    def metrics() -> Response:
        """Prometheus: counts and times of requests by route; nothing about any dataset."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


def _warm_up() -> None:
    from service.privacy.calibration import price_order  # noqa: PLC0415 - the point is to do it off the start-up path
    from service.privacy.filters import open_budget  # noqa: PLC0415
    from service.privacy.orders import AutoOrder  # noqa: PLC0415

    price_order(AutoOrder(epsilon=1.0), units=10_000, budget=open_budget(1.0, 1e-5))
