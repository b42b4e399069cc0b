"""The run of `method: rdpcgan`."""
