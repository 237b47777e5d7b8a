"""Who may use the gateway, what they may reach, and which rules apply: to read only, and without any secret."""

import time
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from gateway.config.access_settings import TokenSettings
from gateway.config.authorization_settings import ReachSettings
from gateway.config.issuer_settings import IssuerSettings
from gateway.config.moments import seconds_of_moment
from gateway.config.policy_settings import RuleSettings
from gateway.serving.console.console import Console
from gateway.serving.console.views import View

_HINTS = ("read_only", "destructive", "idempotent", "open_world")
_SOON_SECONDS = 14 * 86_400.0


async def _access(console: Console, _: Request) -> Mapping[str, Any]:
    """Return `tokens`, `people` and `issuers` with their reach, the `rules`, and the state of pins and audit trail."""
    settings, now = console.gateway.settings, time.time()
    access, policy, trail = settings.access, settings.policy, console.gateway.audit
    server = access.authorization_server
    return {
        "shared_token": settings.http.token is not None,
        "tokens": [_token(name, token, now) for name, token in access.tokens.items()],
        "people": [
            {"name": name, "admin": one.admin, "has_passphrase": one.hash is not None, **_reach(one)}
            for name, one in access.people.items()
        ],
        "issuers": [{"name": name, "issuer": one.issuer, **_reach(one)} for name, one in access.issuers.items()],
        "authorization_server": None
        if server is None
        else {"registration": server.registration, "company": None if server.oidc is None else server.oidc.issuer},
        "limits": access.limits.model_dump(exclude_none=True),
        "read_only": policy.read_only,
        "approval": policy.approval,
        "rules": [_rule(rule) for rule in policy.rules],
        "pins": settings.pins.mode,
        "audit": None
        if trail is None
        else {"path": str(trail.path), "problem": trail.problem, "arguments": settings.audit.arguments},
        "waiting": sum(each.verdict is None for each in console.gateway.router.approvals.listed()),
    }


def _token(name: str, token: TokenSettings, now: float) -> dict[str, Any]:
    ends = None if token.expires is None else seconds_of_moment(token.expires)
    return {
        "name": name,
        "principal": token.principal or name,
        "expires": None if token.expires is None else str(token.expires),
        "state": "valid"
        if ends is None
        else "expired"
        if ends <= now
        else "soon"
        if ends - now < _SOON_SECONDS
        else "valid",
        "in_url": token.url,
        **_reach(token),
    }


def _reach(one: TokenSettings | ReachSettings | IssuerSettings) -> dict[str, Any]:
    return {
        "upstreams": list(one.upstreams),
        "tools": list(one.tools),
        "profile": one.profile,
        "calls_per_minute": one.calls_per_minute,
    }


def _rule(rule: RuleSettings) -> dict[str, Any]:
    """Return a rule with its conditions in the words of the configuration."""
    conditions = {
        key: list(globs) for key in ("upstreams", "tools", "principals") if (globs := getattr(rule, key)) is not None
    }
    hints = {hint: value for hint in _HINTS if (value := getattr(rule, hint)) is not None}
    return {
        "name": rule.name,
        "effect": rule.effect,
        "conditions": {**conditions, **hints},
        "arguments": rule.arguments,
        "reason": rule.reason,
    }


VIEWS = (View("/access", "access.html", _access, "servers"),)
