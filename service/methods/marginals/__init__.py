"""Orders of `method: marginals`."""
