"""RFC 6962 hashes, and RFC 9162 section 2.1.3.2."""

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
            # At the right edge a node without a sibling rises to where it has one.
            while node % 2 == 0 and node != 0:
                node //= 2
                last //= 2
        else:
            found = _node_hash(found, sibling)
        node //= 2
        last //= 2
    return last == 0 and found == root
