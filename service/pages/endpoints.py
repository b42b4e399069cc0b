"""The web page: every router of this room, in one."""

from __future__ import annotations

from fastapi import APIRouter

from service.pages import (
    admin,
    assets_of,
    buying,
    datasets,
    ledger,
    orders,
    publishing,
    questions,
    reading,
    releases,
    reports,
    sign_in,
    single_sign_on,
    uploads,
)

router = APIRouter(include_in_schema=False)
for each in (
    assets_of.router,
    sign_in.router,
    single_sign_on.router,
    publishing.router,
    reading.router,
    uploads.router,  # before the datasets: `new` is no id
    datasets.router,
    buying.router,
    orders.router,
    releases.router,
    reports.router,
    questions.router,
    ledger.router,
    admin.router,
):
    router.include_router(each)
