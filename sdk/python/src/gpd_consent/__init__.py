"""Asks a gpd server whether personal data may be processed, records consent, verifies its proofs offline."""

from ._async_client import AsyncConsentClient
from ._client import ConsentClient
from ._errors import ConsentError, ErrorKind
from ._proof import verify_consistency, verify_proof
from ._protocols import AsyncConsent, Consent
from ._types import (
    Check,
    ConsentState,
    Cosigner,
    CurrentState,
    Decision,
    Health,
    History,
    HistoryEvent,
    Permissions,
    ProofRef,
    ProvenEntry,
    PurposeState,
    Receipt,
    ReportedOutcome,
    Session,
    Verdict,
    VisitorState,
    WebhookEvent,
    WriteEntry,
    WriteResult,
)
from ._version import VERSION as __version__
from ._webhook import verify_webhook

__all__ = [
    "AsyncConsent",
    "AsyncConsentClient",
    "Check",
    "Consent",
    "ConsentClient",
    "ConsentError",
    "ConsentState",
    "Cosigner",
    "CurrentState",
    "Decision",
    "ErrorKind",
    "Health",
    "History",
    "HistoryEvent",
    "Permissions",
    "ProofRef",
    "ProvenEntry",
    "PurposeState",
    "Receipt",
    "ReportedOutcome",
    "Session",
    "Verdict",
    "VisitorState",
    "WebhookEvent",
    "WriteEntry",
    "WriteResult",
    "__version__",
    "verify_consistency",
    "verify_proof",
    "verify_webhook",
]
