"""Coins that repeat: what is counted in these tests is the same in every run, and no bound is passed by chance."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from imprimatur.local import coins


@pytest.fixture(autouse=True)
def coins_that_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of `secrets`. That coins come from there and from nowhere else has a test of its own."""
    source = random.Random("coins")
    monkeypatch.setattr(coins, "secrets", SimpleNamespace(randbits=source.getrandbits, token_bytes=source.randbytes))
