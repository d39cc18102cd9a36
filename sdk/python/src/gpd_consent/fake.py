"""A fake of the client for your tests. It works in memory and allows only what was granted."""

from ._fake import AsyncFakeConsent, FakeCall, FakeConsent
from ._fake_log import GpcPolicy

__all__ = ["AsyncFakeConsent", "FakeCall", "FakeConsent", "GpcPolicy"]
