"""c2sp.org/tlog-proof@v1 with its entry, checked offline (SPEC.md section 6)."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from ._base64 import decode_base64, parse_decimal
from ._errors import ConsentError
from ._inclusion import is_included, leaf_hash
from ._json import JsonObject, is_object, parse_json
from ._note import is_signed_by, parse_note, parse_vkey
from ._types import ProvenEntry

_METHOD = "verify_proof"
_MAX_PATH = 63


@dataclass(frozen=True, slots=True)
class _Parsed:
    entry: bytes
    index: int
    path: list[bytes]
    checkpoint: str


def _parse_hash(text: str) -> bytes | None:
    data = decode_base64(text)
    return data if data is not None and len(data) == 32 else None


def _is_unicode(text: str) -> bool:
    """False for a lone surrogate, which no bytes could have been."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _parse(text: object) -> _Parsed | None:
    if not isinstance(text, str) or not _is_unicode(text):
        return None
    head, gap, checkpoint = text.partition("\n\n")
    lines = head.split("\n")
    if gap == "" or not 3 <= len(lines) <= 3 + _MAX_PATH or lines[0] != "c2sp.org/tlog-proof@v1":
        return None
    if not lines[1].startswith("extra ") or not lines[2].startswith("index "):
        return None
    entry, index = decode_base64(lines[1][6:]), parse_decimal(lines[2][6:])
    path = [found for found in map(_parse_hash, lines[3:]) if found is not None]
    if entry is None or index is None or len(path) != len(lines) - 3:
        return None
    return _Parsed(entry, index, path, checkpoint)


def _parse_checkpoint(text: str) -> tuple[str, int, bytes] | None:
    lines = text.split("\n")
    if len(lines) != 4 or lines[0] == "" or lines[3] != "":
        return None
    size, root = parse_decimal(lines[1]), _parse_hash(lines[2])
    return None if size is None or root is None else (lines[0], size, root)


def _parse_entry(data: bytes) -> JsonObject | None:
    value = parse_json(data)
    if not is_object(value) or type(value.get("v")) is not int or value["v"] != 1:
        return None
    return value if isinstance(value.get("type"), str) else None


def _refusal(code: str) -> ConsentError:
    return ConsentError(_METHOD, "proof", code=code)


def verify_proof(
    text: str,
    *,
    vkey: str,
    seq: int | None = None,
    hash: str | None = None,
    type: str | None = None,
    purpose: str | None = None,
) -> ProvenEntry:
    """Offline. `vkey` is the log's verifier key, got once by another way than the proof, and kept.

    Give `seq` and `hash` of the decision's proof: without them a true proof of another entry passes. Raises a
    ConsentError of kind `proof`, whose code says which check failed.
    """
    if importlib.util.find_spec("cryptography") is None:
        raise ConsentError(
            _METHOD, "config", code="no-cryptography", hint="pip install 'gpd-consent[proofs]'"
        )
    key = parse_vkey(vkey)
    if key is None:
        raise _refusal("malformed-key")
    proof = _parse(text)
    if proof is None:
        raise _refusal("malformed-proof")
    note = parse_note(proof.checkpoint)
    if note is None:
        raise _refusal("malformed-checkpoint")
    if not is_signed_by(note, key):
        raise _refusal("not-signed")
    checkpoint = _parse_checkpoint(note.text)
    if checkpoint is None:
        raise _refusal("malformed-checkpoint")
    origin, size, root = checkpoint
    if origin != key.name:
        raise _refusal("other-log")
    leaf = leaf_hash(proof.entry)
    if not is_included(proof.index, size, leaf, proof.path, root):
        raise _refusal("not-included")
    entry = _parse_entry(proof.entry)
    if entry is None:
        raise _refusal("malformed-entry")
    found = ProvenEntry(proof.index, leaf.hex(), entry, origin, size, root.hex())
    asked = ((seq, found.seq), (hash, found.hash), (type, entry["type"]), (purpose, entry.get("purpose")))
    if any(expected is not None and expected != actual for expected, actual in asked):
        raise _refusal("unexpected-entry")
    return found
