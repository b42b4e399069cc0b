"""Attacks on what is published: synthetic rows and generators, not the noise of a step."""
