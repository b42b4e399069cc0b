"""Declarations made for other tools as a declaration here; each says what it could not carry over."""
