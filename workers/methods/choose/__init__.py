"""The run of `method: choose`."""
