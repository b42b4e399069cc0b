"""Synthetic rows and images drawn from published generators, and the formats they are written in."""
