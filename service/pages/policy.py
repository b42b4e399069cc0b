"""What a page may do in a browser: load files of this service and ask this service; nothing that stands in the page itself is run."""

from __future__ import annotations

PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    # Without it a browser names no origin when it sends a form of ours.
    "Referrer-Policy": "same-origin",
    # What a page holds is for who is signed in; after signing out "back" must not show it again.
    "Cache-Control": "no-store",
    "Vary": "Cookie, Accept-Language, HX-Request",
}
