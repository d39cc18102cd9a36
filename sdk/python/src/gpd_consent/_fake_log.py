"""Choices, Global Privacy Control and Idempotency-Keys of a fake, by the rules of the server."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from ._errors import ConsentError, kind_of_status

GpcPolicy = Literal["opt-out", "ask", "ignore"]
"""Effect of Global Privacy Control on a purpose."""

_CHOICE_OF = {"grant": "granted", "deny": "denied", "withdraw": "withdrawn"}
_PURPOSE = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_CURSOR = re.compile(r"\d{1,16}")
_MAX_PURPOSES = 50
_MAX_PAGE = 200
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class _Event:
    principal_id: str
    purpose: str
    choice: str
    policy_version: int
    gpc: bool
    seq: int
    over_gpc: bool
    time: str
    expires: float | None


def refusal(method: str, code: str, status: int) -> ConsentError:
    return ConsentError(method, kind_of_status(status), code=code, status=status)


def _proof_of(seq: int) -> dict[str, Any]:
    genesis = "0" * 64
    return {
        "seq": seq,
        "hash": genesis if seq == 0 else hashlib.sha256(f"fake entry {seq}".encode()).hexdigest(),
    }


def _text_of(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class FakeLog:
    def __init__(self, clock: Callable[[], float]) -> None:
        self.ttl_days: dict[str, float] = {}
        self._clock = clock
        self._events: list[_Event] = []
        self._policies: dict[str, GpcPolicy] = {}
        self._signals: dict[str, set[str]] = {}
        """The people with a GPC signal, and the purposes that each granted without it since."""
        self._answers: dict[str, tuple[str, dict[str, Any]]] = {}
        self._accounts: dict[str, str] = {}
        self._erased: set[str] = set()
        self._purposes: list[str] | None = None
        """None: every purpose is known."""
        self._entries = 0
        self._policy_version = 0
        self._material_version = 0
        """Grants under an older policy are outdated."""

    def time(self, later: float = 0) -> str:
        return _text_of(self._clock() + later)

    def set_gpc_policy(self, purpose: str, policy: GpcPolicy) -> None:
        self._policies[purpose] = policy

    def set_purposes(self, purposes: Sequence[str]) -> None:
        self._purposes = list(purposes)

    def join(self, browser: str, account: str) -> None:
        """From then on the browser and the account answer for each other."""
        self._accounts[browser] = account

    def erase(self, principal_id: str) -> int:
        person = self._person_of(principal_id)
        kept = [event for event in self._events if self._person_of(event.principal_id) != person]
        count = len(self._events) - len(kept)
        self._events = kept
        self._signals.pop(person, None)
        self._erased.add(person)
        return count

    def purposes(self) -> list[dict[str, Any]]:
        ids = self._purposes or list(dict.fromkeys(event.purpose for event in self._events))
        return [
            {
                "id": name,
                "title": name,
                "description": "",
                "lawfulBasis": "consent",
                "gpc": self._policy_of(name),
                "ttlDays": int(self.ttl_days.get(name, 180)),
                "banner": True,
            }
            for name in ids
        ]

    def define_purposes(self, method: str, purposes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        for one in purposes:
            if not _PURPOSE.fullmatch(str(one.get("id"))):
                raise refusal(method, "invalid-request", 400)
            self._policies[one["id"]] = one.get("gpc", "opt-out")
            self.ttl_days[one["id"]] = one.get("ttlDays", 180)
        known = [one["id"] for one in self.purposes()]
        self._purposes = list(dict.fromkeys([*known, *(one["id"] for one in purposes)]))
        return self.purposes()

    def publish(self, version: int, is_material: bool) -> dict[str, Any]:
        """Publishes a policy; a material one makes older grants outdated."""
        self._policy_version = version
        if is_material:
            self._material_version = version
        self._entries += 1
        return _proof_of(self._entries)

    def write(self, method: str, body: dict[str, Any], idempotency_key: str | None) -> dict[str, Any]:
        self._check_write(method, body)
        request = json.dumps([method, body], sort_keys=True)
        if idempotency_key is not None and idempotency_key in self._answers:
            known, answer = self._answers[idempotency_key]
            if known != request:
                raise refusal(method, "idempotency-conflict", 409)
            return answer
        person = self._person_of(body["principalId"])
        if body.get("gpc") is True:
            self._signals[person] = set()
        elif body.get("gpc") is False and method == "grant" and person in self._signals:
            self._signals[person].update(body["purposes"])
        if method == "grant":
            self._erased.discard(person)
        entries = [{"purpose": one, **self._append(method, body, one)} for one in body["purposes"]]
        result = {"entries": entries, "seq": entries[-1]["seq"], "hash": entries[-1]["hash"]}
        if idempotency_key is not None:
            self._answers[idempotency_key] = (request, result)
        return result

    def _check_write(self, method: str, body: dict[str, Any]) -> None:
        purposes = body["purposes"]
        is_list = len(purposes) <= _MAX_PURPOSES and len(set(purposes)) == len(purposes)
        if not is_list or not all(map(_PURPOSE.fullmatch, purposes)):
            raise refusal(method, "invalid-request", 400)
        if not all(map(self._is_known, purposes)):
            raise refusal(method, "unknown-purpose", 422)
        if not body.get("overGpc"):
            return
        if body.get("gpc") is not True or len(purposes) != 1:
            raise refusal(method, "invalid-request", 400)
        if self._policy_of(purposes[0]) != "ask":
            raise refusal(method, "unknown-purpose", 422)

    def _append(self, method: str, body: dict[str, Any], purpose: str) -> dict[str, Any]:
        self._entries += 1
        is_signal = method == "deny" and body.get("gpc") is True and self._policy_of(purpose) != "ignore"
        days = self.ttl_days.get(purpose) if method == "grant" else None
        event = _Event(
            principal_id=body["principalId"],
            purpose=purpose,
            choice="gpc-opt-out" if is_signal else _CHOICE_OF[method],
            policy_version=body.get("policyVersion", self._policy_version),
            gpc=self._is_opted_out(body["principalId"], purpose),
            seq=self._entries,
            over_gpc=body.get("overGpc") is True,
            time=self.time(),
            expires=None if days is None else self._clock() + days * _DAY,
        )
        self._events.append(event)
        return _proof_of(event.seq)

    def _person_of(self, principal_id: str) -> str:
        return self._accounts.get(principal_id, principal_id)

    def _events_of(self, principal_id: str) -> list[_Event]:
        person = self._person_of(principal_id)
        return [event for event in self._events if self._person_of(event.principal_id) == person]

    def _is_known(self, purpose: str) -> bool:
        return self._purposes is None or purpose in self._purposes

    def _policy_of(self, purpose: str) -> GpcPolicy:
        return self._policies.get(purpose, "opt-out")

    def _is_opted_out(self, principal_id: str, purpose: str) -> bool:
        granted = self._signals.get(self._person_of(principal_id))
        return granted is not None and purpose not in granted

    def _is_overruled_by_gpc(self, purpose: str, last: _Event | None) -> bool:
        """True if a signal ends this choice: it heeds the signal, and was not made despite it."""
        policy = self._policy_of(purpose)
        return policy != "ignore" and not (policy == "ask" and last is not None and last.over_gpc)

    def _reason_of(self, principal_id: str, purpose: str, last: _Event | None) -> str:
        if not self._is_known(purpose):
            return "unknown-purpose"
        if last is None and self._person_of(principal_id) in self._erased:
            return "erased"
        if self._is_opted_out(principal_id, purpose) and self._is_overruled_by_gpc(purpose, last):
            return "gpc-opt-out"
        if last is None or last.choice == "gpc-opt-out":
            return "never-asked"
        if last.choice == "granted" and last.expires is not None and last.expires <= self._clock():
            return "expired"
        is_outdated = last.choice == "granted" and last.policy_version < self._material_version
        return "policy-outdated" if is_outdated else last.choice

    def decide(self, principal_id: str, purpose: str) -> dict[str, Any]:
        last = next((one for one in reversed(self._events_of(principal_id)) if one.purpose == purpose), None)
        reason = self._reason_of(principal_id, purpose, last)
        proven = None if reason == "never-asked" else last
        newest = self._events[-1].seq if self._events else 0
        return {
            "allowed": reason == "granted",
            "reason": reason,
            "proof": _proof_of(proven.seq if proven else newest),
            "policyVersion": proven.policy_version if proven else self._policy_version,
            "expiresAt": _text_of(proven.expires) if proven and proven.expires is not None else None,
            "given": "unknown",
        }

    def state(self, principal_id: str) -> list[dict[str, Any]]:
        last = {event.purpose: event for event in self._events_of(principal_id)}
        return [
            {"purpose": purpose, "choice": one.choice, "at": one.time, **self.decide(principal_id, purpose)}
            for purpose, one in last.items()
        ]

    def visitor_state(self, principal_id: str, *, gpc: bool) -> tuple[tuple[str, ...], int]:
        """Returns what this person's cookie says; `gpc`: under a signal of this request."""
        last = {event.purpose: event for event in self._events_of(principal_id)}
        allowed = tuple(
            purpose
            for purpose, event in last.items()
            if self.decide(principal_id, purpose)["allowed"]
            and not (gpc and self._is_overruled_by_gpc(purpose, event))
        )
        return allowed, max((event.seq for event in last.values()), default=0)

    def history(self, method: str, principal_id: str, cursor: str | None, limit: Any) -> dict[str, Any]:
        """Returns the events before the cursor, newest first."""
        is_page = type(limit) is int and 1 <= limit <= _MAX_PAGE
        if not is_page or (cursor is not None and not _CURSOR.fullmatch(cursor)):
            raise refusal(method, "invalid-request", 400)
        before = self._entries + 1 if cursor is None else int(cursor)
        found = [one for one in reversed(self._events_of(principal_id)) if one.seq < before]
        page = found[:limit]
        after = str(page[-1].seq) if len(found) > len(page) else None
        return {"principalId": principal_id, "events": list(map(_told, page)), "nextCursor": after}


def _told(event: _Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "type": f"consent.{event.choice}",
        "purpose": event.purpose,
        "time": event.time,
        "policyVersion": event.policy_version,
        "gpc": event.gpc,
        "source": "backend",
        "expiresAt": None if event.expires is None else _text_of(event.expires),
        **({"overGpc": True} if event.over_gpc else {}),
    }
