"""What a page may do in a browser: carry out and show exactly what it was sent with, and ask this service alone."""

from __future__ import annotations

import base64
import hashlib

REST = (
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)


def page_headers(*, style: str, script: str | None = None) -> dict[str, str]:
    """The policy of a page whose one style, and one script, are these: nothing that gets into it otherwise is carried out."""
    scripts = "" if script is None else f"script-src '{_hash(script)}'; "
    policy = f"default-src 'none'; {scripts}style-src '{_hash(style)}'; {REST}"
    return {"Content-Security-Policy": policy, "Cache-Control": "no-cache"}


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
