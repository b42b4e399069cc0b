"""Attacks on our own mechanisms: how much of the claimed ε an adversary can really prove. See docs/audits.md."""
