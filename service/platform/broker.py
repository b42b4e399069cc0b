"""The address of the broker, for its two clients: Celery's transport (kombu) and redis-py read URLs differently.

`redis+socket:///path` is kombu's word for a unix socket, `unix:///path` that of redis-py. And where a `rediss://` URL says
nothing of certificates, redis-py checks them and kombu does not: here both check, and no URL may turn that off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from service.base.errors import InvalidInput
from service.base.lazy import lazy

if TYPE_CHECKING:
    import redis
else:
    redis = lazy("redis")

TIMEOUT_SECONDS = 5.0
SCHEMES = frozenset({"redis", "rediss", "redis+socket"})
CHECKED = {"ssl_cert_reqs": "required", "ssl_check_hostname": "true"}


def broker_url(url: str) -> str:
    """The URL for Celery; over TLS the server's certificate and name are always checked."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise InvalidInput("A broker URL begins with redis://, rediss:// or redis+socket://.", where="redis_url")
    if parts.scheme != "rediss":
        return url
    query = dict(parse_qsl(parts.query))
    for name, wanted in CHECKED.items():
        if query.setdefault(name, wanted).lower() != wanted:
            raise InvalidInput(
                f"A rediss:// URL may not say {name}={query[name]}: certificates are checked.", where="redis_url"
            )
    return urlunsplit(parts._replace(query=urlencode(query, safe="/")))


def broker_client(url: str) -> redis.Redis:
    """A client of redis-py for the same broker."""
    url = broker_url(url)
    parts = urlsplit(url)
    if parts.scheme == "redis+socket":
        query = dict(parse_qsl(parts.query))
        query["db"] = query.pop("virtual_host", "0")
        url = urlunsplit(parts._replace(scheme="unix", query=urlencode(query)))
    return redis.Redis.from_url(url, socket_timeout=TIMEOUT_SECONDS, socket_connect_timeout=TIMEOUT_SECONDS)
