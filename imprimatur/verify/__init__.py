"""What anybody can check without trust in a service: hash chains, Merkle proofs, signatures. The server computes with the same code.

Signatures need the package cryptography (`imprimatur[verify]`); everything else the standard library alone.
"""
