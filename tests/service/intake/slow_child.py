"""A reading process that never ends by itself."""

import time
from typing import Any

from service.intake import child, sandbox


def _sleep(_: dict[str, Any]) -> dict[str, Any]:
    while True:
        time.sleep(1)


def main(begun: sandbox.Begun) -> None:
    child.main(begun, _sleep)
