"""The published ZIP beside its certificate, which signs name, size and SHA-256 of every other member. Pure.

The ZIP is read as the service writes it and in no other form: members one after the other without gaps, plain regular
files, no comment, no extra field. Programs differ in how they read other forms (a name twice, something before the
first member, a directory at two places), so what one program checks, another may not be the one that is unpacked.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

from imprimatur.verify.documents import NotJson, read_json

CERTIFICATE = "certificate.json"
BOUND_SINCE = 3
"""The first format of certificates that signs the members of the ZIP."""
NOT_BOUND = (
    "the ZIP is NOT BOUND to this certificate, whose format is older than 3: nothing says that the other files in it are those"
    " that were published"
)
MOST_CERTIFICATE_BYTES = 64 * 1024 * 1024
MOST_DIRECTORY_BYTES = 1024 * 1024
CHUNK_BYTES = 1024 * 1024
_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_STORED, _DEFLATED, _UTF_8, _PLAIN = 0, 8, 0x800, 0o100644 << 16


class NotAsCertified(ValueError):
    """The ZIP is not the one that its certificate signs. The message says in what."""


@dataclass(frozen=True, slots=True)
class Member:
    """One file of the ZIP, and where its bytes lie."""

    name: str
    method: int
    crc: int
    size: int
    compressed_size: int
    start: int


def facts_of(content: bytes) -> dict[str, Any]:
    """What a certificate says of one member."""
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def is_bound(certificate: Mapping[str, Any]) -> bool:
    """Whether the certificate is of a format that signs the members."""
    version = certificate.get("format")
    return "members" in certificate or type(version) is not int or version >= BOUND_SINCE


def check_bundle(file: IO[bytes], certificate: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The certificate in the ZIP; raises `NotAsCertified` unless every other member is as it says, and no other is there.

    `certificate`: the one that must be in it. Whose signature it carries is not looked at here.
    """
    members = {member.name: member for member in members_of(file)}
    inside = _certificate_in(file, members)
    if certificate is not None and inside != certificate:
        raise NotAsCertified(_of_another(inside, certificate))
    if is_bound(inside):
        signed = _signed_members(inside)
        _require_same_names(members.keys() - {CERTIFICATE}, signed.keys())
        for name, facts in signed.items():
            _require_same_content(file, members[name], facts)
    return inside


def certificate_in(file: IO[bytes]) -> dict[str, Any]:
    """The certificate in a ZIP, of which nothing is checked; raises `NotAsCertified` where there is none to be read."""
    return _certificate_in(file, {member.name: member for member in members_of(file)})


def members_of(file: IO[bytes]) -> list[Member]:
    """The members of a ZIP as this service writes it; raises `NotAsCertified` for any other form."""
    size = file.seek(0, 2)
    try:
        directory, count = _directory(file, size)
        members, position, start = list[Member](), 0, 0
        for _ in range(count):
            member, position, start = _next_member(file, directory, position, start)
            members.append(member)
    except (struct.error, UnicodeDecodeError):
        raise NotAsCertified("this is not a ZIP as the service writes it") from None
    if position != len(directory) or start + len(directory) + _END.size != size:
        raise NotAsCertified("the ZIP holds bytes that belong to no member")
    for member in members:
        require_safe_name(member.name)
    names = [member.name for member in members]
    doubled = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if doubled:
        raise NotAsCertified(f"the ZIP lists {', '.join(doubled)} more than once")
    return members


def require_safe_name(name: str) -> None:
    """Names stay below the folder in which they are unpacked, on every system."""
    parts = name.split("/")
    if any(part in {"", ".", ".."} for part in parts) or any(c in '\\:*?"<>|' or not c.isprintable() for c in name):
        raise NotAsCertified(f"the ZIP has a member whose name is not a plain path: {name!r}")


def _directory(file: IO[bytes], size: int) -> tuple[bytes, int]:
    """The central directory, which must lie before the last 22 bytes, and its number of entries."""
    file.seek(max(0, size - _END.size))
    mark, disk, first, here, count, length, start, comment = _END.unpack(file.read(_END.size))
    if mark != b"PK\x05\x06" or (disk, first, comment) != (0, 0, 0) or here != count:
        raise NotAsCertified("this is not a ZIP as the service writes it")
    if start + length + _END.size != size or length > MOST_DIRECTORY_BYTES:
        raise NotAsCertified("the directory of the ZIP is not where it says")
    file.seek(start)
    return file.read(length), count


def _next_member(file: IO[bytes], directory: bytes, position: int, start: int) -> tuple[Member, int, int]:
    """The entry at a position of the directory, whose local header must lie at `start`; and where the next ones lie."""
    (mark, _, needed, flags, method, time, date, crc, packed, size, name_length, *more, attributes, at) = (
        _CENTRAL.unpack_from(directory, position)
    )
    extra, comment, disk, _ = more
    position += _CENTRAL.size
    raw = directory[position : position + name_length]
    file.seek(start)
    local = _LOCAL.unpack(file.read(_LOCAL.size))
    again = (b"PK\x03\x04", needed, flags, method, time, date, crc, packed, size, name_length, 0)
    if mark != b"PK\x01\x02" or (extra, comment, disk) != (0, 0, 0) or at != start or local != again:
        raise NotAsCertified("the ZIP lists its members in another form than the service writes")
    if file.read(name_length) != raw:
        raise NotAsCertified("a member of the ZIP has two names")
    if needed not in {10, 20} or flags & ~_UTF_8 or method not in {_STORED, _DEFLATED} or attributes != _PLAIN:
        raise NotAsCertified("a member of the ZIP is encrypted, no plain file, or packed in an unknown way")
    name = raw.decode("utf-8" if flags & _UTF_8 else "ascii")
    first = start + _LOCAL.size + name_length
    return Member(name, method, crc, size, packed, first), position + name_length, first + packed


def _content(file: IO[bytes], member: Member) -> Iterator[bytes]:
    """The bytes of a member, piece by piece and never more than it says."""
    file.seek(member.start)
    left, given, crc, unpack = member.compressed_size, 0, 0, zlib.decompressobj(-zlib.MAX_WBITS)
    wrong = NotAsCertified(f"{member.name} cannot be unpacked")
    while left:
        packed = file.read(min(CHUNK_BYTES, left))
        if not packed:
            raise wrong
        left -= len(packed)
        while packed:
            try:
                piece = packed if member.method == _STORED else unpack.decompress(packed, CHUNK_BYTES)
            except zlib.error:
                raise wrong from None
            packed = b"" if member.method == _STORED else unpack.unconsumed_tail
            given, crc = given + len(piece), zlib.crc32(piece, crc)
            if given > member.size:
                raise wrong
            yield piece
    if (given, crc) != (member.size, member.crc) or (
        member.method == _DEFLATED and (not unpack.eof or unpack.unused_data)
    ):
        raise wrong


def _certificate_in(file: IO[bytes], members: Mapping[str, Member]) -> dict[str, Any]:
    found = members.get(CERTIFICATE)
    if found is None or found.size > MOST_CERTIFICATE_BYTES:
        raise NotAsCertified(f"the ZIP holds no {CERTIFICATE}")
    try:
        document = read_json(b"".join(_content(file, found)))
    except NotJson as error:
        raise NotAsCertified(f"the {CERTIFICATE} in the ZIP cannot be read: {error}") from None
    if not isinstance(document, dict):
        raise NotAsCertified(f"the {CERTIFICATE} in the ZIP is none")
    return document


def _of_another(inside: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    if inside.get("release_id") != wanted.get("release_id"):
        return f"the certificate in the ZIP is that of another release, {inside.get('release_id')}"
    return "the certificate in the ZIP is not the one of its release"


def _signed_members(certificate: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    """Name -> SHA-256 and size."""
    try:
        signed = {str(name): (str(of["sha256"]), of["bytes"]) for name, of in certificate["members"].items()}
    except (AttributeError, KeyError, TypeError):
        raise NotAsCertified("the certificate does not say which members the ZIP has") from None
    for name, (_, size) in signed.items():
        require_safe_name(name)
        if type(size) is not int or name == CERTIFICATE:
            raise NotAsCertified("the certificate does not say which members the ZIP has")
    return signed


def _require_same_names(found: set[str], signed: Any) -> None:
    more, less = sorted(found - set(signed)), sorted(set(signed) - found)
    if more:
        raise NotAsCertified(f"the ZIP holds {', '.join(more)}, which its certificate does not sign")
    if less:
        raise NotAsCertified(f"the ZIP lacks {', '.join(less)}, which its certificate signs")


def _require_same_content(file: IO[bytes], member: Member, facts: tuple[str, int]) -> None:
    digest, size = facts
    computed = hashlib.sha256()
    if member.size == size:
        for piece in _content(file, member):
            computed.update(piece)
    if member.size != size or computed.hexdigest() != digest:
        raise NotAsCertified(f"{member.name} was changed: it is not the file that the certificate signs")
