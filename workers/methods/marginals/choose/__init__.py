"""Which pairs of columns are measured."""
