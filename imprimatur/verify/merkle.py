"""Merkle trees as in RFC 6962, section 2.1: roots, inclusion and consistency proofs, and their verification. Pure.

A tree is kept as its complete subtrees: the node (level, place) covers 2**level leaves from place * 2**level on. Every
hash that a root or a proof needs is the root of a range of leaves, which is made from a few such nodes.
Verification follows RFC 9162, sections 2.1.3.2 and 2.1.4.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

Range = tuple[int, int]
"""Leaves from the first number up to, not including, the second."""
Node = tuple[int, int]
"""Level and place of a complete subtree."""

EMPTY_ROOT = hashlib.sha256(b"").digest()


def leaf_hash(leaf: bytes) -> bytes:
    """Hash of a leaf. Its prefix keeps a node from passing for a leaf."""
    return hashlib.sha256(b"\x00" + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash of two subtrees."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def subtrees(leaves: Range) -> list[Node]:
    """The complete subtrees of a range, from left to right, largest first. Its start must fit its size."""
    start, stop = leaves
    nodes = []
    while start < stop:
        level = (stop - start).bit_length() - 1
        nodes.append((level, start >> level))
        start += 1 << level
    return nodes


def nodes_of(leaves: Sequence[bytes]) -> dict[Node, bytes]:
    """All complete subtrees of a small tree, from its leaves."""
    known, row = dict[Node, bytes](), [leaf_hash(leaf) for leaf in leaves]
    for level in range(len(leaves).bit_length()):
        known |= {(level, place): hash_ for place, hash_ in enumerate(row)}
        row = [node_hash(left, right) for left, right in zip(row[::2], row[1::2], strict=False)]
    return known


def range_hash(leaves: Range, known: Mapping[Node, bytes]) -> bytes:
    """The root of a range of leaves."""
    nodes = [known[node] for node in subtrees(leaves)]
    if not nodes:
        return EMPTY_ROOT
    root = nodes.pop()
    while nodes:
        root = node_hash(nodes.pop(), root)
    return root


def inclusion_ranges(index: int, size: int) -> list[Range]:
    """PATH(index, D[size]): the ranges whose roots prove that the leaf is in the tree of this size."""
    if not 0 <= index < size:
        raise ValueError("no such leaf in a tree of this size")
    path, start, stop = list[Range](), 0, size
    while stop - start > 1:
        middle = start + _split(stop - start)
        if index < middle:
            path.append((middle, stop))
            stop = middle
        else:
            path.append((start, middle))
            start = middle
    return path[::-1]


def consistency_ranges(first: int, second: int) -> list[Range]:
    """PROOF(first, D[second]): the ranges whose roots prove that the tree of size `second` begins with the other."""
    if not 0 <= first <= second:
        raise ValueError("the first tree must not be larger than the second")
    if first in {0, second}:
        return []
    path, start, stop, whole = list[Range](), 0, second, True
    while stop != first:
        middle = start + _split(stop - start)
        if first <= middle:
            path.append((middle, stop))
            stop = middle
        else:
            path.append((start, middle))
            start, whole = middle, False
    if not whole:
        path.append((start, stop))
    return path[::-1]


def verify_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether the path proves that a tree of this size and root has this leaf at this place."""
    if not 0 <= index < size:
        return False
    place, last, computed = index, size - 1, leaf_hash(leaf)
    for hash_ in path:
        if last == 0:
            return False
        if place & 1 or place == last:
            computed = node_hash(hash_, computed)
            place, last = _climb(place, last)
        else:
            computed = node_hash(computed, hash_)
        place, last = place >> 1, last >> 1
    return last == 0 and computed == root


def verify_consistency(first: int, second: int, path: Sequence[bytes], first_root: bytes, second_root: bytes) -> bool:
    """Whether the path proves that the tree of size and root `second` begins with the whole of the other."""
    if not 0 <= first <= second:
        return False
    if first in {0, second}:
        return not path and first_root == (second_root if first == second else EMPTY_ROOT)
    if not path:
        return False
    hashes = list(path)
    if first & (first - 1) == 0:
        hashes.insert(0, first_root)
    place, last = first - 1, second - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    earlier = later = hashes[0]
    for hash_ in hashes[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            earlier, later = node_hash(hash_, earlier), node_hash(hash_, later)
            place, last = _climb(place, last)
        else:
            later = node_hash(later, hash_)
        place, last = place >> 1, last >> 1
    return last == 0 and earlier == first_root and later == second_root


def _climb(place: int, last: int) -> tuple[int, int]:
    """Past the levels at which a node at the right edge has no sibling."""
    while not place & 1 and place:
        place, last = place >> 1, last >> 1
    return place, last


def _split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << ((size - 1).bit_length() - 1)
