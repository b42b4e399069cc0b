"""Celery's way to Redis, which what is no message at all does not end: kombu lets such errors end the worker."""

from __future__ import annotations

import logging
from queue import Empty
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis

logger = logging.getLogger(__name__)

SCHEMES = ("redis", "rediss")


class Channel(redis.Channel):  # type: ignore[misc]
    """Passes over what cannot be read."""

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            logger.warning("something in the broker is not a message (%s); it was dropped", type(error).__name__)
            raise Empty from None


class Transport(redis.Transport):  # type: ignore[misc]
    """Celery's transport to Redis, with channels that pass over what cannot be read."""

    Channel = Channel


def use_for_redis() -> None:
    """Every connection to a Redis broker that this process opens from now on is of this kind."""
    for scheme in SCHEMES:
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{Transport.__name__}"
