"""Arithmetic without privacy duties: buffers that are used again, and sums whose rounding is bounded in advance."""
