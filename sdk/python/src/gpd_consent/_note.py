"""C2SP signed-note with Ed25519 keys, and cosignatures: c2sp.org/signed-note, c2sp.org/tlog-cosignature."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass

from ._base64 import decode_base64
from ._json import MAX_INTEGER

ED25519 = 0x01
COSIGNATURE = 0x04
"""The signature of a witness over a time and the note."""
_KEY_ID_BYTES = 4
_TIME_BYTES = 8
_MAX_SIGNATURES = 64
_VKEY = re.compile(r"([^+]*)\+([0-9a-f]{8})\+(.*)", re.DOTALL)
_SIGNATURE = re.compile(r"\u2014 (\S+) (\S+)")


@dataclass(frozen=True, slots=True)
class VerifierKey:
    name: str
    id: bytes
    public_key: bytes
    """32 bytes."""


@dataclass(frozen=True, slots=True)
class Note:
    text: str
    """The signed text, including its last newline."""
    signatures: tuple[tuple[str, bytes], ...]


def _is_control(char: str) -> bool:
    return unicodedata.category(char) == "Cc"


def _is_name(text: str) -> bool:
    return text != "" and not any(char == "+" or char.isspace() or _is_control(char) for char in text)


def parse_vkey(text: object, kind: int = ED25519) -> VerifierKey | None:
    """`name+hex(id)+base64(kind || public key)`. Base64 can contain `+`, so only the first two separate."""
    found = _VKEY.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        return None
    name, digits, encoded = found.groups()
    typed = decode_base64(encoded)
    if not _is_name(name) or typed is None or len(typed) != 33 or typed[0] != kind:
        return None
    key_id = hashlib.sha256(f"{name}\n".encode("utf-8", "surrogatepass") + typed).digest()[:_KEY_ID_BYTES]
    return VerifierKey(name, key_id, typed[1:]) if key_id.hex() == digits else None


def _parse_signature(line: str) -> tuple[str, bytes] | None:
    found = _SIGNATURE.fullmatch(line)
    if found is None:
        return None
    name, encoded = found.groups()
    data = decode_base64(encoded)
    return (name, data) if data is not None and len(data) > _KEY_ID_BYTES and _is_name(name) else None


def parse_note(note: str) -> Note | None:
    """The text may have empty lines: the last one separates it from the signatures."""
    gap = note.rfind("\n\n")
    if gap == -1 or not note.endswith("\n") or any(_is_control(char) and char != "\n" for char in note):
        return None
    lines = note[gap + 2 : -1].split("\n")
    signatures = [found for found in map(_parse_signature, lines) if found is not None]
    if len(lines) > _MAX_SIGNATURES or len(signatures) != len(lines):
        return None
    return Note(note[: gap + 1], tuple(signatures))


def _lines_of(note: Note, key: VerifierKey) -> list[bytes]:
    """The signatures of all lines with the name and id of this key."""
    return [
        data[_KEY_ID_BYTES:] for name, data in note.signatures if name == key.name and data.startswith(key.id)
    ]


def _verifies(message: str, key: VerifierKey, signature: bytes) -> bool:
    # Imported here, because only proofs and states need this optional package.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key.public_key).verify(signature, message.encode("utf-8"))
    except (InvalidSignature, ValueError):
        return False
    return True


def is_signed_by(note: Note, key: VerifierKey) -> bool:
    """True if the key has signed the note and all signatures under its name and id are valid."""
    lines = _lines_of(note, key)
    return len(lines) > 0 and all(_verifies(note.text, key, signature) for signature in lines)


def cosigned_at(note: Note, key: VerifierKey) -> int | None:
    """Epoch seconds of this witness's latest cosignature; None if there is none or one is invalid."""
    latest: int | None = None
    for line in _lines_of(note, key):
        time = int.from_bytes(line[:_TIME_BYTES], "big")
        message = f"cosignature/v1\ntime {time}\n{note.text}"
        is_time = len(line) == _TIME_BYTES + 64 and time <= MAX_INTEGER
        if not is_time or not _verifies(message, key, line[_TIME_BYTES:]):
            return None
        latest = max(latest or 0, time)
    return latest
