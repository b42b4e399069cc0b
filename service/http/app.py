"""`create_app()`: the one place where HTTP is put together. Starts without torch, in about a second."""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from anyio import CapacityLimiter
from fastapi import Depends, FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from imprimatur.version import VERSION
from service.audit.endpoints import router as audit
from service.audit.service import Refusals
from service.auth.endpoints import router as keys
from service.auth.limits import RateLimits
from service.auth.principal import Principal
from service.auth.reading import reading_turns
from service.auth.single_sign_on import Provider
from service.base.errors import InvalidInput, Unavailable
from service.base.memory import Tidy, use_few_arenas
from service.datasets.endpoints import router as datasets
from service.http.methods import router as methods
from service.http.metrics_token import needs_token, read_token
from service.http.openapi import DocumentedApp
from service.http.operations import install_operations
from service.http.quick_routes import QuickRoutes, QuickThreads
from service.http.readiness import install_probes
from service.http.refusals import RefusalLog, method_of
from service.http.security_headers import KnownHosts, SecurityHeaders
from service.intake import sandbox
from service.intake.ingest import describe_sandbox
from service.ledger.endpoints import router as ledger
from service.pages import error_pages
from service.pages.docs import router as docs
from service.pages.endpoints import router as pages
from service.pages.help import install as install_help
from service.platform.context import Context, open_context
from service.platform.secret_roots import require_right
from service.platform.settings import Settings, names_of
from service.queries.endpoints import router as queries
from service.releases.bundles import Bundles
from service.releases.completion import router as completion
from service.releases.endpoints import router as releases
from service.releases.open_samples import OpenSamples
from service.releases.publish import router as publish
from service.releases.report_endpoints import router as reports
from service.releases.repository import any_published
from service.releases.watching import Watching
from service.requests import problems as http_errors
from service.requests.behind import Behind
from service.requests.spool import SpoolQuotas
from service.requests.turns import FairTurns
from service.requests.uploads import BodyLimit
from service.samples.cache import SamplerCache, expect_samples
from service.samples.drawing_threads import DrawingThreads

AUDITED_REFUSALS = (403, 404, 409, 410)
"""Refusals of good keys. Requests without one belong to no tenant; /metrics counts them."""

DESCRIPTION = """
Upload a table once, give it a privacy budget, and order synthetic releases from it. A ledger refuses whatever would
exceed the budget. Every reply is public, post-processing, or meant for the owner alone.
"""

API = (datasets, methods, releases, reports, queries, completion, publish, ledger, keys, audit)


def create_app(settings: Settings | None = None) -> FastAPI:
    """The HTTP application on one context. What cannot be opened ends the process with a sentence."""
    use_few_arenas()
    try:
        context = open_context(settings)
    except (Unavailable, InvalidInput) as error:
        raise SystemExit(f"the API cannot start: {error.detail}") from None

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, float]]:
        # The first price of a process imports scipy and friends, a first sample polars and friends; not while one waits.
        threading.Thread(target=_warm_up, args=(context,), daemon=True).start()
        tidy = Tidy()
        tidy.start()
        with suppress(Unavailable, SQLAlchemyError), context.statement() as session:
            require_right(session, context.secrets)  # a wrong file ends the process, with a sentence
        logging.getLogger("uvicorn.error").info(describe_sandbox(sandbox.expected()))  # the server's log, at its level
        yield {"request_head_seconds": context.settings.request_head_seconds}  # for service.http.protocol
        await app.state.behind.close()
        app.state.quick_threads.close()
        tidy.stop()

    app = DocumentedApp(
        title="Imprimatur",
        version=VERSION,
        description=DESCRIPTION,
        lifespan=lifespan,
        # A redirect to the address with or without its last slash would go to whatever Host the caller has named.
        redirect_slashes=False,
        # /docs is a page of our own (service/pages): FastAPI's loads scripts of others into the origin of the keys.
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json" if context.settings.serve_docs else None,
    )
    app.state.context = context
    app.state.bundles = Bundles(context)
    app.state.samplers = SamplerCache(context.storage.get_content)
    app.state.open_samples = OpenSamples(DrawingThreads())
    app.state.watching = Watching(context)
    app.state.quick_threads = QuickThreads(context.settings.database_pool_size)
    app.state.reading_turns = reading_turns(context.settings.database_pool_size)
    _make_room_for_uploads(app, context.settings)
    app.state.rate_limits = RateLimits(context.settings)
    app.state.sign_in_provider = _sign_in_provider(context.settings)
    app.add_middleware(QuickRoutes, routers=(datasets, releases))  # the first added is the innermost
    app.add_middleware(BodyLimit, settings=context.settings)
    app.state.refused = _audited(Refusals(context))
    http_errors.install(app, refused=app.state.refused, failure_page=error_pages.failure_page)
    error_pages.install(app)
    registry = CollectorRegistry()
    _install_surface(app, context.settings, registry)
    for router in (*API, pages):
        app.include_router(router)
    if context.settings.serve_docs:
        app.include_router(docs)
    install_help(app)
    install_probes(app, context)
    _install_metrics(app, context, registry)
    return app


def _sign_in_provider(settings: Settings) -> Provider | None:
    """Settings that do not fit together end the process with a sentence; a provider that is away does not."""
    try:
        return None if settings.oidc_issuer is None else Provider(settings)
    except Unavailable as error:
        raise SystemExit(f"the API cannot start: {error.detail}") from None


def _make_room_for_uploads(app: FastAPI, settings: Settings) -> None:
    app.state.ingest_slots = CapacityLimiter(settings.ingest_processes)
    app.state.upload_turns = FairTurns(settings.ingest_processes, settings.ingest_processes_per_tenant)
    app.state.behind = Behind()
    app.state.spool_quotas = SpoolQuotas(
        settings.spool_bytes_per_tenant, settings.uploads_per_tenant, settings.scratch_dir
    )


def _install_surface(app: FastAPI, settings: Settings, registry: CollectorRegistry) -> None:
    """What every request passes on its way in and every reply on its way out; the last added is the outermost."""
    if hosts := names_of(settings.allowed_hosts):
        app.add_middleware(KnownHosts, hosts=hosts)
    app.add_middleware(SecurityHeaders, behind_tls=settings.behind_tls)
    app.add_middleware(Measure, registry=registry, refused=RefusalLog(registry).note)
    if proxies := names_of(settings.trusted_proxies):
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=proxies)


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

    def __init__(self, app: ASGIApp, registry: CollectorRegistry, refused: Callable[[Scope, int], None]) -> None:
        self.app = app
        self.refused = refused
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
                method, route = method_of(scope), getattr(scope.get("route"), "path", "unmatched")
                is_secret = (method, route) in UPLOADS and message["status"] in ROWS_DECIDE
                self.requests.labels(method, route, "answered" if is_secret else message["status"]).inc()
                self.seconds.labels(method, route).observe(time.monotonic() - began)
                self.refused(scope, message["status"])
            await send(message)

        await self.app(scope, receive, measured)


def _install_metrics(app: FastAPI, context: Context, registry: CollectorRegistry) -> None:
    settings = context.settings
    if settings.metrics == "off":
        return
    install_operations(registry, context, _pools(app))
    content = {"text/plain": {"schema": {"type": "string"}}}
    door = [Depends(needs_token(read_token(settings.metrics_token_file)))] if settings.metrics == "token" else []

    @app.get(
        "/metrics", tags=["probes"], response_class=Response, responses={200: {"content": content}}, dependencies=door
    )
    def metrics() -> Response:
        """Prometheus: requests by route, the queue, how releases end, the parts; no dataset, tenant or id."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


def _pools(app: FastAPI) -> dict[str, tuple[str, Callable[[], float]]]:
    """What of this process may be full, by the name of its gauge."""
    quick: QuickThreads = app.state.quick_threads
    turns: FairTurns = app.state.upload_turns
    return {
        "imprimatur_requests_waiting": ("Plain requests that wait for a thread.", lambda: float(quick.waiting)),
        "imprimatur_uploads_parsing": ("Uploads that are parsed now.", lambda: float(turns.taken)),
        "imprimatur_uploads_waiting": ("Uploads that wait for their turn to be parsed.", lambda: float(turns.waiting)),
    }


def _warm_up(context: Context) -> None:
    from service.methods.marginals.order import MarginalsOrder  # noqa: PLC0415 - the point is to do it off the start-up path
    from service.methods.pricing import price_order  # noqa: PLC0415
    from service.privacy.filters import open_budget  # noqa: PLC0415

    price_order(MarginalsOrder(method="marginals", epsilon=1.0, pairs="all"), open_budget(1.0, 1e-5))
    with suppress(Unavailable, SQLAlchemyError), context.statement() as session:
        if any_published(session):
            expect_samples()
