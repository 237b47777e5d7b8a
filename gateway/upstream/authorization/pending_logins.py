"""Logins that have begun and wait for the browser to return: each works once, and not for long."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.upstream.authorization.ports import ClientIdentification

if TYPE_CHECKING:
    from gateway.upstream.authorization.discovery import AuthorizationServer
    from gateway.upstream.authorization.proof_key import ProofKey

SECONDS = 600.0
"""Seconds that somebody has for a login."""

MOST = 1_000
MOST_OF_ONE = 5
"""Logins of one principal for one upstream that may wait: a link is often asked for again."""


@dataclass(frozen=True)
class LoginAttempt:
    """All that was decided when a login began, so that nothing that arrives later can change it."""

    upstream: str
    principal: str
    url: str
    """The upstream's URL (`bare_url`)."""
    server: AuthorizationServer
    client: ClientIdentification
    redirect_uri: str
    scopes: Sequence[str]
    code_challenge: str
    verifier: str = field(repr=False)
    is_step_up: bool = False
    key: ProofKey | None = None
    """The key that the tokens are to be bound to (DPoP)."""
    began: float = field(default_factory=time.monotonic)


class PendingLogins:
    """Attempts by their state, which `named` makes of a secret. The oldest give way to new ones."""

    def __init__(self, named: Callable[[str], str]) -> None:
        self._named = named
        self._attempts: dict[str, LoginAttempt] = {}

    def add(self, attempt: LoginAttempt) -> str:
        """Keep an attempt, and return its state, which cannot be guessed."""
        self._expire()
        same = [
            state
            for state, each in self._attempts.items()
            if (each.upstream, each.principal) == (attempt.upstream, attempt.principal)
        ]
        for state in same[: len(same) - MOST_OF_ONE + 1]:
            del self._attempts[state]
        if len(self._attempts) >= MOST:
            del self._attempts[next(iter(self._attempts))]
        state = self._named(secrets.token_urlsafe(32))
        self._attempts[state] = attempt
        return state

    def find(self, state: str) -> LoginAttempt | None:
        """Return the attempt with this state, if it is still waited for."""
        self._expire()
        return self._attempts.get(state)

    def take(self, state: str) -> None:
        """Remove an attempt: whatever comes of it, its state does not work again."""
        self._attempts.pop(state, None)

    def drop(self, upstream: str, principal: str) -> None:
        """Remove the attempts of a principal for an upstream."""
        for state, each in tuple(self._attempts.items()):
            if (each.upstream, each.principal) == (upstream, principal):
                del self._attempts[state]

    def _expire(self) -> None:
        oldest = time.monotonic() - SECONDS
        for state in [state for state, each in self._attempts.items() if each.began < oldest]:
            del self._attempts[state]
