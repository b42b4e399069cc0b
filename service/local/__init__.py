"""Real Postgres and real Redis from wheels, and the whole service on top of them, for one machine and for tests."""

from service.local.errors import AlreadyRunning, CannotStart
from service.local.servers import TEST_SETTINGS, Postgres, Redis
from service.local.stack import EmbeddedStack
from service.local.supervisor import Supervisor

__all__ = ["TEST_SETTINGS", "AlreadyRunning", "CannotStart", "EmbeddedStack", "Postgres", "Redis", "Supervisor"]
