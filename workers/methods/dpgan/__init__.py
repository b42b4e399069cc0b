"""`dpgan`: the private step of `idpgan` with one clip norm, constant noise and bounded weights."""
