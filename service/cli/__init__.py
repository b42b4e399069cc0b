"""The `imprimatur` command."""

from service.cli.application import main

__all__ = ["main"]
