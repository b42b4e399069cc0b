"""The run side of `method: queries`."""
