"""The version that certificates and OpenAPI name."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("imprimatur")
except PackageNotFoundError:  # a checkout that was never installed
    VERSION = "0+unknown"
