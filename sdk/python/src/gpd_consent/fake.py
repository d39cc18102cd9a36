"""For your tests, in place of a client: in memory, and nothing is allowed that was not granted."""

from ._async_fake import AsyncFakeConsent
from ._fake import FakeCall, FakeConsent

__all__ = ["AsyncFakeConsent", "FakeCall", "FakeConsent"]
