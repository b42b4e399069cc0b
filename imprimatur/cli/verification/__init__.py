"""Checks that need no trust in the service: hash chains, signatures, and proofs of the Merkle log."""

from imprimatur.cli.verification.certificates import verify_certificates
from imprimatur.cli.verification.checks import Result
from imprimatur.cli.verification.documents import known_head, known_key, read_certificate
from imprimatur.cli.verification.ledgers import verify_in_log, verify_ledger

__all__ = [
    "Result",
    "known_head",
    "known_key",
    "read_certificate",
    "verify_certificates",
    "verify_in_log",
    "verify_ledger",
]
