"""Orders of `method: idpgan`."""
