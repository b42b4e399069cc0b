"""The run of `method: pategan`."""
