"""Certificates for Postgres and Redis in docker-compose.yml: made by an authority whose key never touches the disk.

    python docker/make_certificates.py --authority DIR --server postgres DIR --server redis DIR --owner 999

Where certificates are there and good for another 60 days, nothing is done. With --renew all are made anew; then restart
everything, because clients trust the new authority only. Each server's folder gets its own key and nothing of the other's.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import secrets
import sys
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = dt.timedelta(days=730)
RENEWED_BEFORE_END = dt.timedelta(days=60)
AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE = "ca.crt", "server.crt", "server.key"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--authority", type=Path, required=True, help="folder for ca.crt, which all clients read")
    parser.add_argument("--server", nargs=2, action="append", required=True, metavar=("HOST", "DIR"))
    parser.add_argument("--owner", type=int, help="user and group number that the servers run as; needs root")
    parser.add_argument("--renew", action="store_true", help="make all anew, whatever is there")
    options = parser.parse_args()
    servers = {host: Path(folder) for host, folder in options.server}
    if not options.renew and all(_is_good(options.authority, host, folder) for host, folder in servers.items()):
        sys.stdout.write("The certificates are there and good.\n")
        return 0
    make(options.authority, servers, options.owner)
    sys.stdout.write(f"Made certificates for {', '.join(servers)}, valid for {VALID.days} days.\n")
    return 0


def make(authority: Path, servers: dict[str, Path], owner: int | None = None) -> None:
    """One authority and one certificate a server. The authority's key is forgotten when this returns."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"Imprimatur, servers, {dt.datetime.now(dt.UTC):%Y-%m-%d} {secrets.token_hex(4)}")
    begun = (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
    )
    certificate = begun.sign(key, hashes.SHA256())
    for host, folder in servers.items():
        _make_server(host, folder, certificate, key, owner)
    _write(authority / AUTHORITY_FILE, certificate.public_bytes(serialization.Encoding.PEM), 0o644, None)


def _make_server(
    host: str, folder: Path, authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey, owner: int | None
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_name(host), authority.subject, key)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        # Clients on Python 3.13 and later take no certificate without it.
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write(folder / KEY_FILE, private, 0o600, owner)
    _write(folder / CERTIFICATE_FILE, certificate.public_bytes(serialization.Encoding.PEM), 0o644, owner)


def _is_good(authority: Path, host: str, folder: Path) -> bool:
    """Whether the server's certificate is for this host, by this authority, fits its key and lasts long enough."""
    try:
        issuer = x509.load_pem_x509_certificate((authority / AUTHORITY_FILE).read_bytes())
        certificate = x509.load_pem_x509_certificate((folder / CERTIFICATE_FILE).read_bytes())
        key = serialization.load_pem_private_key((folder / KEY_FILE).read_bytes(), None)
        certificate.verify_directly_issued_by(issuer)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)  # those of before had none
    except Exception as error:  # noqa: BLE001 - whatever it is, make them anew
        sys.stdout.write(f"No usable certificate for {host} ({type(error).__name__}).\n")
        return False
    fits = key.public_key() == certificate.public_key() and host in names.get_values_for_type(x509.DNSName)
    end = min(certificate.not_valid_after_utc, issuer.not_valid_after_utc)
    return fits and end - dt.datetime.now(dt.UTC) > RENEWED_BEFORE_END


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))  # machines whose clocks are behind
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(**allowed: bool) -> x509.KeyUsage:
    every = (
        "digital_signature content_commitment key_encipherment data_encipherment key_agreement "
        "key_cert_sign crl_sign encipher_only decipher_only"
    )
    return x509.KeyUsage(**dict.fromkeys(every.split(), False) | allowed)


def _write(path: Path, content: bytes, mode: int, owner: int | None) -> None:
    """The whole file or none, never readable by more than it shall be."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    if owner is not None:
        os.chown(unfinished, owner, owner)
    unfinished.chmod(mode)
    unfinished.replace(path)


if __name__ == "__main__":
    sys.exit(main())
