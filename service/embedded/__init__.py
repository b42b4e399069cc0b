"""Real Postgres and real Redis from wheels, and the whole service on top of them, for one machine and for tests."""

from service.embedded.errors import AlreadyRunning, CannotStart
from service.embedded.servers import TEST_SETTINGS, Postgres, Redis
from service.embedded.stack import EmbeddedStack
from service.embedded.supervisor import Supervisor

__all__ = ["TEST_SETTINGS", "AlreadyRunning", "CannotStart", "EmbeddedStack", "Postgres", "Redis", "Supervisor"]
