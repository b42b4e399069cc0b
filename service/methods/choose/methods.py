"""The methods whose orders may be candidates."""

from __future__ import annotations

from typing import Any

from service.methods import idpgan, marginals
from service.methods.interface import Method

METHODS: dict[str, Method[Any]] = {each.name: each for each in (marginals.METHOD, idpgan.METHOD)}
