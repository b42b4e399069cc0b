"""What every list takes in its query; the pages themselves are `service.platform.paging`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from service.platform.paging import MOST_LIMIT

Limit = Annotated[int, Query(ge=1, le=MOST_LIMIT, description="Items of a page, at most.")]
Before = Annotated[
    str | None, Query(max_length=100, description="`next` of the page before: only what is older than that page.")
]

BeforeNumber = Annotated[int | None, Query(ge=1, lt=2**63, description="`next` of the page before.")]
