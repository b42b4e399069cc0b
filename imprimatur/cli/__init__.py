"""The `imprimatur` command: everything that talks to a service. The server's distribution adds its own commands (`server.py`)."""

from imprimatur.cli.application import main

__all__ = ["main"]
