"""Estimated against measured seconds and memory of small real trainings of every method."""
