"""Knobs of the private step: what a gradient is looked at through before it is clipped, and how what was released is applied."""
