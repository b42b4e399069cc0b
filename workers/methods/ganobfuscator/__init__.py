"""`ganobfuscator`: the private step of `idpgan` with clip norms from public records."""
