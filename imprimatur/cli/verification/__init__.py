"""Checks that need no trust in the service: hash chains, signatures, and proofs of the Merkle log."""

from imprimatur.cli.verification.certificates import verify_certificates
from imprimatur.cli.verification.documents import known_key, read_certificate
from imprimatur.cli.verification.ledgers import verify_in_log, verify_ledger

__all__ = ["known_key", "read_certificate", "verify_certificates", "verify_in_log", "verify_ledger"]
