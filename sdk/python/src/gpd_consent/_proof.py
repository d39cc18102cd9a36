"""Verifies proofs of entries offline: c2sp.org/tlog-proof@v1 with the entry (SPEC.md section 6)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ._base64 import decode_base64, parse_decimal
from ._errors import ConsentError
from ._inclusion import is_extension, is_included, leaf_hash
from ._json import MAX_INTEGER, JsonObject, is_object, parse_json
from ._note import COSIGNATURE, Note, VerifierKey, cosigned_at, is_signed_by, parse_note, parse_vkey
from ._state_keys import require_cryptography
from ._types import Cosigner, ProvenEntry

_METHOD = "verify_proof"
_MAX_PATH = 63
_HEX = re.compile(r"[0-9a-f]{64}")


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
    """False for a lone surrogate, which is no valid UTF-8."""
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


def _required_witnesses(witnesses: object, min_witnesses: object) -> int:
    """The required number of witnesses. A list without a key is refused, because it would require none."""
    if witnesses is None and min_witnesses is None:
        return 0
    key_count = len(witnesses) if isinstance(witnesses, (list, tuple)) else 0
    required = key_count if min_witnesses is None else min_witnesses
    if type(required) is not int or not 1 <= required <= key_count:
        raise ConsentError(_METHOD, "config", hint="min_witnesses is 1 to the number of witnesses")
    return required


def _witness_keys(log_key: VerifierKey, texts: Sequence[str]) -> list[VerifierKey]:
    """Refuses a key that appears twice, as it would count twice, and the log's own key, no witness."""
    keys = [key for key in (parse_vkey(text, COSIGNATURE) for text in texts) if key is not None]
    if len({key.public_key for key in (log_key, *keys)}) != len(texts) + 1:
        raise _refusal("malformed-key")
    return keys


def _cosigners_of(note: Note, keys: Sequence[VerifierKey]) -> tuple[Cosigner, ...]:
    times = [(key.name, cosigned_at(note, key)) for key in keys]
    return tuple(Cosigner(name, time) for name, time in times if time is not None)


def verify_proof(
    text: str,
    *,
    vkey: str,
    seq: int | None = None,
    hash: str | None = None,
    type: str | None = None,
    purpose: str | None = None,
    witnesses: Sequence[str] | None = None,
    min_witnesses: int | None = None,
) -> ProvenEntry:
    """Verifies a proof offline. `vkey` is the log's verifier key, got once independently of the proof.

    Pass `seq` and `hash` of the decision's proof: without them, a valid proof of another entry passes.
    `witnesses` are verifier keys that you trust, pinned like `vkey`; `min_witnesses` of them, by default all,
    must have cosigned. Raises a ConsentError of kind `proof`, whose code names the failed check.
    """
    require_cryptography(_METHOD)
    required = _required_witnesses(witnesses, min_witnesses)
    key = parse_vkey(vkey)
    if key is None:
        raise _refusal("malformed-key")
    keys = _witness_keys(key, witnesses or ())
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
    cosigners = _cosigners_of(note, keys)
    if len(cosigners) < required:
        raise _refusal("not-witnessed")
    leaf = leaf_hash(proof.entry)
    if not is_included(proof.index, size, leaf, proof.path, root):
        raise _refusal("not-included")
    entry = _parse_entry(proof.entry)
    if entry is None:
        raise _refusal("malformed-entry")
    found = ProvenEntry(proof.index, leaf.hex(), entry, origin, size, root.hex(), cosigners)
    pairs = ((seq, found.seq), (hash, found.hash), (type, entry["type"]), (purpose, entry.get("purpose")))
    if any(expected is not None and expected != actual for expected, actual in pairs):
        raise _refusal("unexpected-entry")
    return found


def _parse_hex(text: object) -> bytes | None:
    return bytes.fromhex(text) if isinstance(text, str) and _HEX.fullmatch(text) else None


def _is_size(size: object) -> bool:
    return type(size) is int and 1 <= size <= MAX_INTEGER


def verify_consistency(
    old_size: int, old_root: str, new_size: int, new_root: str, proof: Sequence[str]
) -> None:
    """Verifies that a log of `new_size` entries begins with all `old_size` entries of an earlier checkpoint.

    RFC 9162 section 2.1.4.2. All hashes are lower-case hex. Raises a ConsentError of kind `proof`, whose
    code is `malformed-proof` or `not-consistent`.
    """

    def refusal(code: str) -> ConsentError:
        return ConsentError("verify_consistency", "proof", code=code)

    before, after = _parse_hex(old_root), _parse_hex(new_root)
    path = [found for found in map(_parse_hex, proof) if found is not None]
    is_whole = len(path) == len(proof) <= _MAX_PATH
    if not _is_size(old_size) or not _is_size(new_size) or before is None or after is None or not is_whole:
        raise refusal("malformed-proof")
    if not is_extension(old_size, before, new_size, after, path):
        raise refusal("not-consistent")
