"""A published ZIP beside its certificate: whatever was changed, added, left out, doubled or hidden is found."""

import io
import json
import random
import struct
import zipfile

import pytest

from imprimatur.verify.members import NotAsCertified, check_bundle, facts_of, is_bound, members_of
from workers.generators.archive import pack, to_json

FILES = {
    "generator.onnx": bytes(range(256)) * 500,
    "config.json": b"{}",
    "sample.py": b"print('rows')\n",
    "größe.txt": b"",
}
CERTIFICATE = {"format": 3, "release_id": "r", "members": {name: facts_of(content) for name, content in FILES.items()}}


def packed(files=FILES, certificate=CERTIFICATE):
    return pack(files, certificate)


def check(content, certificate=CERTIFICATE):
    return check_bundle(io.BytesIO(content), certificate)


def with_members(*members):
    """A ZIP by Python's own writer, in which a name may come twice and members may be of any kind."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members:
            if isinstance(member, str):
                member = zipfile.ZipInfo(member)  # noqa: PLW2901 - given its mode here
                member.external_attr = 0o100644 << 16
            archive.writestr(member, content)
    return buffer.getvalue()


SIGNED = [*FILES.items(), ("certificate.json", to_json(CERTIFICATE))]


def test_what_is_published_is_as_certified():
    assert check(packed()) == check(packed(), None) == CERTIFICATE
    assert [member.name for member in members_of(io.BytesIO(packed()))] == [*FILES, "certificate.json"]
    assert check(with_members(*SIGNED)) == CERTIFICATE, "any packing of the same files"


@pytest.mark.parametrize("name", FILES)
def test_a_changed_member_is_found(name):
    changed = {**FILES, name: FILES[name][:-1] + b"!" if FILES[name] else b"!"}
    with pytest.raises(NotAsCertified, match=f"{name} was changed"):
        check(packed(changed))


def test_an_extra_and_a_missing_member_are_found():
    with pytest.raises(NotAsCertified, match=r"holds setup\.py, which its certificate does not sign"):
        check(packed({**FILES, "setup.py": b""}))
    with pytest.raises(NotAsCertified, match=r"lacks sample\.py"):
        check(packed({name: content for name, content in FILES.items() if name != "sample.py"}))
    with pytest.raises(NotAsCertified, match=r"holds no certificate\.json"):
        check(with_members(*FILES.items()), None)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_is_listed_twice_is_found():
    for twice in (
        [("sample.py", b"evil"), *SIGNED],
        [*SIGNED, ("sample.py", FILES["sample.py"])],
        [*SIGNED, SIGNED[-1]],
    ):
        with pytest.raises(NotAsCertified, match="more than once"):
            check(with_members(*twice))


@pytest.mark.parametrize(
    "name", ["../sample.py", "/etc/passwd", "a/../../b", "a//b", "./a", "C:\\a", "C:a", "a\\b", "a\nb", "folder/"]
)
def test_a_name_that_leaves_the_folder_is_refused_even_where_it_is_signed(name):
    signing = {**CERTIFICATE, "members": {**CERTIFICATE["members"], name: facts_of(b"")}}
    for certificate in (CERTIFICATE, signing):
        with pytest.raises(NotAsCertified, match="not a plain path"):
            check(with_members(*FILES.items(), (name, b""), ("certificate.json", to_json(certificate))), certificate)
    with pytest.raises(NotAsCertified, match="not a plain path"):
        check(packed(certificate=signing), signing)


def test_the_certificate_of_another_release_is_refused():
    other = {**CERTIFICATE, "release_id": "s"}
    with pytest.raises(NotAsCertified, match="that of another release, s"):
        check(packed(certificate=other))
    with pytest.raises(NotAsCertified, match="not the one of its release"):
        check(packed(certificate={**CERTIFICATE, "epsilon": 1}))


def test_a_link_and_other_methods_are_refused():
    link = zipfile.ZipInfo("sample.py")
    link.external_attr = 0o120777 << 16
    with pytest.raises(NotAsCertified, match="no plain file"):
        check(with_members(*[(link if name == "sample.py" else name, content) for name, content in SIGNED]))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("certificate.json", to_json(CERTIFICATE))
    with pytest.raises(NotAsCertified):
        check(buffer.getvalue())


def test_bytes_outside_members_are_found():
    """Where programs find the members of a ZIP in different ways, one may be shown what another does not see."""
    whole = packed()
    hidden = with_members(("sample.py", b"evil"))
    for content in (hidden + whole, whole + hidden, whole + b"x", b"x" + whole, whole[:-22] + hidden + whole[-22:]):
        with pytest.raises(NotAsCertified):
            check(content)
    commented = io.BytesIO(whole)
    with zipfile.ZipFile(commented, "a") as archive:
        archive.comment = b"a comment"
    with pytest.raises(NotAsCertified):
        check(commented.getvalue())


@pytest.mark.parametrize("first", [True, False])
def test_a_member_that_the_directory_does_not_list_is_found(first):
    """Programs that unpack a stream see it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in [("sample.py", b"evil"), *SIGNED] if first else [*SIGNED, ("setup.py", b"evil")]:
            member = zipfile.ZipInfo(name)
            member.external_attr = 0o100644 << 16
            archive.writestr(member, content)
            if content == b"evil":
                archive.filelist.pop()
                archive.NameToInfo.clear()
    with pytest.raises(NotAsCertified):
        check(buffer.getvalue())


def test_a_member_of_two_names_is_found():
    whole = packed()
    first = whole.index(b"sample.py")
    local = whole[:first] + b"sampl3.py" + whole[first + 9 :]
    with pytest.raises(NotAsCertified, match="two names"):
        check(local)


def test_no_changed_byte_passes():
    """Flip bits everywhere: only what no reader looks at may change, and then every member reads as it was."""
    whole, rng = packed(), random.Random(1)
    for _ in range(2_000):
        broken = bytearray(whole)
        broken[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        try:
            check(bytes(broken))
        except NotAsCertified:
            continue
        with zipfile.ZipFile(io.BytesIO(bytes(broken))) as archive:
            assert {name: archive.read(name) for name in archive.namelist()} == {
                **FILES,
                "certificate.json": to_json(CERTIFICATE),
            }


def test_a_member_that_unpacks_to_more_than_it_says_is_refused():
    certificate = {"format": 3, "members": {"config.json": {**facts_of(b"{}"), "bytes": 2}}}
    bomb = pack({"config.json": bytes(10_000_000)}, certificate)
    lying = bomb.replace(struct.pack("<I", 10_000_000), struct.pack("<I", 2))
    assert lying != bomb
    with pytest.raises(NotAsCertified, match=r"config\.json cannot be unpacked"):
        check(lying, None)


@pytest.mark.parametrize("version", [3, 4, "2", None, 2.0, True])
def test_only_formats_1_and_2_need_not_sign_the_members(version):
    unsigned = {"format": version, "release_id": "r"}
    assert is_bound(unsigned)
    with pytest.raises(NotAsCertified, match="does not say which members"):
        check(packed(certificate=unsigned), unsigned)


def test_an_earlier_certificate_is_read_as_what_it_was():
    earlier = {"format": 2, "release_id": "r"}
    assert not is_bound(earlier)
    assert check(packed(certificate=earlier), earlier) == earlier
    assert check(packed({"other": b"file"}, earlier), earlier) == earlier
    with pytest.raises(NotAsCertified, match="another release"):
        check(packed(certificate=earlier), {**earlier, "release_id": "s"})


@pytest.mark.parametrize("members", [None, [], {"a": 1}, {"a": {"sha256": "0"}}, {"a": {"sha256": "0", "bytes": "1"}}])
def test_members_that_are_none_are_refused(members):
    certificate = {"format": 3, "members": members}
    with pytest.raises(NotAsCertified):
        check(packed(certificate=certificate), certificate)


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"PK\x05\x06" + bytes(18), json.dumps(CERTIFICATE).encode(), bytes(100)]
)
def test_what_is_no_zip_is_refused(content):
    with pytest.raises(NotAsCertified):
        check(content, None)
