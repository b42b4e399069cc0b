"""Merkle trees against the vectors of the reference implementation of RFC 6962, and against its definition."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imprimatur.verify import merkle

LEAVES = [
    bytes.fromhex(leaf)
    for leaf in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
INCLUSION = {
    (0, 1): [],
    (0, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (5, 8): [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 3): ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
    (1, 5): [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}
CONSISTENCY = {
    (1, 1): [],
    (1, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (6, 8): [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 5): [
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}
"""The vectors of certificate-transparency's own tests."""

SIZES = range(41)


def numbered(size):
    return [bytes([number]) for number in range(size)]


def tree_hash(leaves):
    """MTH of RFC 6962, word for word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    split = 1
    while 2 * split < len(leaves):
        split *= 2
    return hashlib.sha256(b"\x01" + tree_hash(leaves[:split]) + tree_hash(leaves[split:])).digest()


def nodes_of(leaves):
    """All complete subtrees, each from its own leaves."""
    return {
        (level, place): tree_hash(leaves[place << level : (place + 1) << level])
        for level in range(len(leaves).bit_length())
        for place in range(len(leaves) >> level)
    }


def hashes(ranges, known):
    return [merkle.range_hash(each, known) for each in ranges]


@pytest.mark.parametrize("size", range(len(ROOTS)))
def test_roots_of_the_reference_implementation(size):
    assert merkle.range_hash((0, size), nodes_of(LEAVES)).hex() == ROOTS[size]


@pytest.mark.parametrize(("index", "size"), INCLUSION)
def test_inclusion_proofs_of_the_reference_implementation(index, size):
    path = hashes(merkle.inclusion_ranges(index, size), nodes_of(LEAVES))
    assert [each.hex() for each in path] == INCLUSION[index, size]
    assert merkle.verify_inclusion(LEAVES[index], index, size, path, bytes.fromhex(ROOTS[size]))


@pytest.mark.parametrize(("first", "second"), CONSISTENCY)
def test_consistency_proofs_of_the_reference_implementation(first, second):
    path = hashes(merkle.consistency_ranges(first, second), nodes_of(LEAVES))
    assert [each.hex() for each in path] == CONSISTENCY[first, second]
    roots = bytes.fromhex(ROOTS[first]), bytes.fromhex(ROOTS[second])
    assert merkle.verify_consistency(first, second, path, *roots)


@pytest.mark.parametrize("size", SIZES)
def test_every_leaf_has_a_proof_that_holds_for_it_alone(size):
    leaves = numbered(size)
    known, root = nodes_of(leaves), tree_hash(leaves)
    assert merkle.range_hash((0, size), known) == root
    for index in range(size):
        path = hashes(merkle.inclusion_ranges(index, size), known)
        assert [
            (other, place)
            for other in range(size)
            for place in (index, other)
            if merkle.verify_inclusion(leaves[other], place, size, path, root)
        ] == [(index, index)] * 2
        assert not merkle.verify_inclusion(leaves[index], index, size, [*path, root], root)
        assert not path or not merkle.verify_inclusion(leaves[index], index, size, path[:-1], root)
        assert not merkle.verify_inclusion(leaves[index], index + size, size, path, root)


@pytest.mark.parametrize("second", SIZES)
def test_every_earlier_tree_is_consistent_and_no_other_is(second):
    leaves = numbered(second)
    known, root = nodes_of(leaves), tree_hash(leaves)
    for first in range(second + 1):
        earlier = tree_hash(leaves[:first])
        path = hashes(merkle.consistency_ranges(first, second), known)
        assert merkle.verify_consistency(first, second, path, earlier, root)
        assert not merkle.verify_consistency(first, second, [*path, root], earlier, root)
        if path:
            assert not merkle.verify_consistency(first, second, path[:-1], earlier, root)
        for changed in range(first):
            other = tree_hash([*leaves[:changed], b"changed", *leaves[changed + 1 : first]])
            assert not merkle.verify_consistency(first, second, path, other, root)


@settings(deadline=None)
@given(st.integers(1, 300), st.data())
def test_no_changed_history_has_a_proof(second, data):
    """Neither the proof of the old history nor that of the new one makes the two roots agree."""
    first = data.draw(st.integers(1, second))
    changed = data.draw(st.integers(0, first - 1))
    before = [number.to_bytes(2, "big") for number in range(second)]
    after = [*before[:changed], b"other", *before[changed + 1 :]]
    old_root, new_root = tree_hash(before[:first]), tree_hash(after)
    ranges = merkle.consistency_ranges(first, second)
    for leaves in (before, after):
        path = hashes(ranges, nodes_of(leaves))
        assert not merkle.verify_consistency(first, second, path, old_root, new_root)


def test_a_node_is_no_leaf():
    """Without the prefix of leaves, two hashes side by side would pass for the entry above them."""
    left, right = (merkle.leaf_hash(leaf) for leaf in (b"a", b"b"))
    assert merkle.leaf_hash(left + right) != merkle.node_hash(left, right)
    assert not merkle.verify_inclusion(left + right, 0, 1, [], tree_hash([b"a", b"b"]))


def test_what_does_not_exist_has_no_proof():
    for wrong in ((0, 0), (3, 3), (-1, 3)):
        with pytest.raises(ValueError, match="no such leaf"):
            merkle.inclusion_ranges(*wrong)
    with pytest.raises(ValueError, match="larger"):
        merkle.consistency_ranges(4, 3)
    assert not merkle.verify_consistency(4, 3, [], merkle.EMPTY_ROOT, merkle.EMPTY_ROOT)
    assert not merkle.verify_consistency(0, 3, [], b"another root of nothing", bytes(32))
