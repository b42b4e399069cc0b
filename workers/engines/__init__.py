"""Per-unit gradients of critics: which engine computes them, and in how large blocks."""
