"""C2SP signed-note with Ed25519 keys: https://c2sp.org/signed-note"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass

from ._base64 import decode_base64

_ED25519 = 0x01
_KEY_ID_BYTES = 4
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
    """With its last newline: what is signed."""
    signatures: tuple[tuple[str, bytes], ...]


def _is_control(char: str) -> bool:
    return unicodedata.category(char) == "Cc"


def _is_name(text: str) -> bool:
    return text != "" and not any(char == "+" or char.isspace() or _is_control(char) for char in text)


def parse_vkey(text: object) -> VerifierKey | None:
    """`name+hex(id)+base64(0x01 || public key)`. Base64 has pluses of its own, so the first two part it."""
    found = _VKEY.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        return None
    name, digits, encoded = found.groups()
    typed = decode_base64(encoded)
    if not _is_name(name) or typed is None or len(typed) != 33 or typed[0] != _ED25519:
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
    """The text may hold empty lines: the last one parts it from the signatures."""
    gap = note.rfind("\n\n")
    if gap == -1 or not note.endswith("\n") or any(_is_control(char) and char != "\n" for char in note):
        return None
    lines = note[gap + 2 : -1].split("\n")
    signatures = [found for found in map(_parse_signature, lines) if found is not None]
    if len(lines) > _MAX_SIGNATURES or len(signatures) != len(lines):
        return None
    return Note(note[: gap + 1], tuple(signatures))


def is_signed_by(note: Note, key: VerifierKey) -> bool:
    """At least one signature is of this key, and each that claims to be is right."""
    # Only who verifies proofs needs the extra.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    own = [
        data[_KEY_ID_BYTES:] for name, data in note.signatures if name == key.name and data.startswith(key.id)
    ]
    message = note.text.encode("utf-8")
    try:
        public_key = Ed25519PublicKey.from_public_bytes(key.public_key)
        for signature in own:
            public_key.verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return len(own) > 0
