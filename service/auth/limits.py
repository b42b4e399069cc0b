"""How many requests are allowed: by key, by tenant, and by address for requests without a good key."""

from __future__ import annotations

import ipaddress
import math
import uuid

from starlette.datastructures import Address

from service.base.errors import RateLimited
from service.base.messages import Message
from service.platform.settings import Settings
from service.requests.rates import Rates

_OF_A_KEY = Message("this key sends too many requests")
_OF_A_TENANT = Message("the keys of this tenant send too many requests")
_WITHOUT_A_KEY = Message("too many requests without a valid key")


class RateLimits:
    """The limits of one process.

    A key, or a session of the page, that was good not long ago is let in from an address that fails too often: requests without a key must
    not lock out the others behind the same proxy.
    """

    def __init__(self, settings: Settings) -> None:
        burst_seconds = settings.rate_limit_burst_seconds
        self._keys = Rates(settings.rate_limit_requests_per_minute, burst_seconds=burst_seconds)
        self._tenants = Rates(settings.rate_limit_tenant_requests_per_minute, burst_seconds=burst_seconds)
        self._sessions = Rates(settings.rate_limit_requests_per_minute)
        """Of the page, that were good not long ago; nothing is refused by these."""
        self._addresses = Rates(settings.rate_limit_failures_per_minute)

    def before_lookup(self, address: str, digest: bytes) -> None:
        """Refuse without asking the database: a key over its limit, or one more unknown key from a failing address."""
        if self._keys.knows(digest):
            _refuse(self._keys.seconds_until_free(digest, take=False), _OF_A_KEY)
        else:
            _refuse(self._addresses.seconds_until_free(address, take=False), _WITHOUT_A_KEY)

    def knows(self, digest: bytes) -> bool:
        """Whether this key, or this session, was good not long ago."""
        return self._keys.knows(digest) or self._sessions.knows(digest)

    def failed(self, address: str, digest: bytes) -> None:
        """One more request without a good key or session; one that was good and has ended counts as unknown from now on."""
        self._keys.drop(digest)
        self._sessions.drop(digest)
        self._addresses.seconds_until_free(address)

    def outsider(self, address: str) -> None:
        """One more request for what anybody may read."""
        _refuse(self._addresses.seconds_until_free(address), _WITHOUT_A_KEY)

    def before_session(self, address: str, digest: bytes) -> None:
        """As `before_lookup`, of a session of the page; how many requests it may send is counted by its key."""
        if not self._sessions.knows(digest):
            _refuse(self._addresses.seconds_until_free(address, take=False), _WITHOUT_A_KEY)

    def found_session(self, digest: bytes) -> None:
        """This session is good, and is let in for a while whatever its address does."""
        self._sessions.seconds_until_free(digest)

    def passed(self, digest: bytes, tenant_id: uuid.UUID) -> None:
        """One more request of a good key."""
        _refuse(self._keys.seconds_until_free(digest), _OF_A_KEY)
        _refuse(self._tenants.seconds_until_free(tenant_id), _OF_A_TENANT)


def _refuse(wait_seconds: float, why: str) -> None:
    if wait_seconds:
        seconds = max(1, math.ceil(wait_seconds))
        raise RateLimited(Message("%(why)s; wait %(seconds)s s", why=why, seconds=seconds), retry_after_seconds=seconds)


def caller_address(client: Address | None) -> str:
    """What the failures of a request's sender are counted by."""
    return address_of(client.host if client else "unknown")


def address_of(host: str) -> str:
    """What one party surely holds: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 4:
        return host
    return str(ipaddress.ip_network((address, 64), strict=False))
