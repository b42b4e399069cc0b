"""The run side of the toy."""
