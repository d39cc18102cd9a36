"""Verifies inclusion and consistency proofs: RFC 6962 hashes, RFC 9162 sections 2.1.3.2 and 2.1.4.2."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def leaf_hash(entry: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + entry).digest()


def _node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def is_included(index: int, size: int, leaf: bytes, path: Sequence[bytes], root: bytes) -> bool:
    if index >= size:
        return False
    node, last, found = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return False
        if node % 2 == 1 or node == last:
            found = _node_hash(sibling, found)
            # At the right edge, a node without a sibling moves up to a level where it has one.
            while node % 2 == 0 and node != 0:
                node //= 2
                last //= 2
        else:
            found = _node_hash(found, sibling)
        node //= 2
        last //= 2
    return last == 0 and found == root


def is_extension(
    old_size: int, old_root: bytes, new_size: int, new_root: bytes, proof: Sequence[bytes]
) -> bool:
    """True if the newer tree begins with all entries of the older one, which has at least one."""
    if old_size >= new_size:
        return old_size == new_size and not proof and old_root == new_root
    if not proof:
        return False
    # The proof leaves out the first hash if the older tree is a complete subtree: it is the older root.
    whole = old_size & (old_size - 1) == 0
    start, rest = (old_root, proof) if whole else (proof[0], proof[1:])
    node, last = old_size - 1, new_size - 1
    while node % 2 == 1:
        node //= 2
        last //= 2
    before = after = start
    for sibling in rest:
        if last == 0:
            return False
        if node % 2 == 1 or node == last:
            before, after = _node_hash(sibling, before), _node_hash(sibling, after)
            while node % 2 == 0 and node != 0:
                node //= 2
                last //= 2
        else:
            after = _node_hash(after, sibling)
        node //= 2
        last //= 2
    return last == 0 and before == old_root and after == new_root
