"""Orders of `method: mixture`."""
