from __future__ import annotations

import base64
import re

from ._json import MAX_INTEGER

_DECIMAL = re.compile(r"0|[1-9][0-9]{0,15}")


def decode_base64(text: str) -> bytes | None:
    """Decodes only canonical padded base64: with two spellings of a value, a proof could change unnoticed."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return data if base64.b64encode(data).decode("ascii") == text else None


def parse_decimal(text: str) -> int | None:
    """Without leading zeros, at most 2^53-1, or None."""
    if not _DECIMAL.fullmatch(text):
        return None
    value = int(text)
    return value if value <= MAX_INTEGER else None
