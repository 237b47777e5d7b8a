"""The claims of an access token: whether they hold for this gateway, now, and whom they identify."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from gateway.config.issuer_settings import IssuerSettings
from gateway.config.setting_types import RESERVED_PRINCIPALS
from gateway.core.model.claims import claim_in
from gateway.core.model.grant import Grant
from gateway.core.model.json_safe import is_finite
from gateway.core.model.json_values import is_list
from gateway.serving.access.identified import Fault, Identified

_NOT_ACCESS = frozenset({"id", "refresh", "offline", "logout"})
"""What a claim `typ`, which Keycloak has, says of tokens that are not for calls."""

_PRINCIPAL = re.compile(r"\S{1,200}")
"""What can be a principal: the gateway's own, which is nobody's, has a space in it."""
_EMAIL = "email"
"""A claim that is an email address, also one further in, or one whose name begins with a URL."""
_VERIFIED = "email_verified"

ENDPOINTS = ("/mcp", "/sse")
"""The paths that hosts use; a profile may follow, and after it a toolset."""
_MOST_CHOSEN = 2


class TokenRefused(Exception):
    """A token is refused: `fault` for its host, the message for the log; it has nothing of the token in it."""

    def __init__(self, fault: Fault, reason: str) -> None:
        super().__init__(reason)
        self.fault: Fault = fault


class Audience:
    """The audiences of tokens for this gateway: those given, or else its addresses below `public_url`."""

    def __init__(self, given: Collection[str], public_url: str | None) -> None:
        self._given = frozenset(given)
        self._base = None if self._given or public_url is None else public_url.rstrip("/")

    def has(self, audience: object) -> bool:
        """Whether a token with this claim `aud` is meant for the gateway."""
        return any(isinstance(one, str) and self._is_ours(one) for one in _listed(audience))

    def _is_ours(self, audience: str) -> bool:
        if self._base is None:
            return audience in self._given
        address, below = audience.rstrip("/"), f"{self._base}/"
        if not address.startswith(below):
            return address == self._base
        endpoint, *chosen = address.removeprefix(below).split("/")
        return f"/{endpoint}" in ENDPOINTS and len(chosen) <= _MOST_CHOSEN and all(chosen)


def check_claims(claims: Mapping[str, Any], settings: IssuerSettings, audience: Audience, now: float) -> float:
    """Check that a genuine token is an access token for this gateway, now; return when it expires.

    Raises:
        TokenRefused: it is not.
    """
    skew = settings.clock_skew
    expires = _moment(claims, "exp")
    if expires is None:
        raise TokenRefused("wrong", "it has no time at which it expires (exp)")
    if expires + skew <= now:
        raise TokenRefused("expired", "it has expired (exp)")
    for claim in ("nbf", "iat"):
        if (_moment(claims, claim) or 0) > now + skew:
            raise TokenRefused("wrong", f"it is from the future ({claim})")
    if claims.get("iss") != settings.issuer:
        raise TokenRefused("wrong", "it is from another issuer (iss)")
    if not audience.has(claims.get("aud")):
        raise TokenRefused("wrong", "it is not meant for this gateway (aud)")
    if str(claims.get("typ", "")).lower() in _NOT_ACCESS:
        raise TokenRefused("wrong", "it is not an access token (typ)")
    if "cnf" in claims:
        raise TokenRefused("wrong", "it is bound to a key of its host (cnf), which is not supported")
    if not scopes_in(claims).issuperset(settings.required_scopes):
        raise TokenRefused("insufficient", "it lacks scopes that every token needs")
    return expires + skew


def identify(name: str, settings: IssuerSettings, claims: Mapping[str, Any], expires: float) -> Identified:
    """Return whom the claims of a valid token identify, and what that principal reaches.

    Raises:
        TokenRefused: it identifies nobody, or somebody who reaches nothing here.
    """
    grant, is_admin = _grant(settings, claims)
    profile = _claim(claims, settings.claims.profile)
    return Identified(
        _principal(name, settings, claims),
        grant._replace(calls_per_minute=_limit(settings, claims)),
        profile if isinstance(profile, str) else settings.profile,
        expires,
        scopes=scopes_in(claims),
        is_admin=is_admin or _claim(claims, settings.claims.admin) is True,
        issuer=name,
        claims=claims,
        toolset=_toolset(settings, claims),
    )


def scopes_in(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the scopes of a token: `scope`, or `scp` as Entra and Okta have it."""
    return frozenset(_words(claims.get("scope", claims.get("scp"))))


def _principal(name: str, settings: IssuerSettings, claims: Mapping[str, Any]) -> str:
    claim = settings.claims.principal
    value = _claim(claims, claim)
    if not isinstance(value, str) or not _PRINCIPAL.fullmatch(value) or not value.isprintable():
        raise TokenRefused("wrong", f"it says nothing usable of whom it belongs to ({claim})")
    if re.split(r"[./]", claim)[-1] == _EMAIL and not _is_verified(claims, claim):
        raise TokenRefused("forbidden", "its email address is not verified")
    prefix = f"{name}:" if settings.principal_prefix is None else settings.principal_prefix
    principal = f"{prefix}{value}"
    if principal in RESERVED_PRINCIPALS:
        raise TokenRefused("forbidden", "its principal is one that the gateway has for others")
    return principal


def _is_verified(claims: Mapping[str, Any], email: str) -> bool:
    """Whether nothing says that an email address is not verified. Some servers write truth as a text."""
    said = (_claim(claims, f"{email.removesuffix('email')}{_VERIFIED}"), _claim(claims, _VERIFIED))
    return all(one is None or one is True or one == "true" for one in said)


def _grant(settings: IssuerSettings, claims: Mapping[str, Any]) -> tuple[Grant, bool]:
    names = settings.claims
    if not settings.groups:
        upstreams = settings.upstreams if names.upstreams is None else tuple(_words(_claim(claims, names.upstreams)))
        tools = settings.tools if names.tools is None else tuple(_words(_claim(claims, names.tools)))
        return Grant(upstreams, tools), False
    member_of = {one for one in _listed(_claim(claims, names.groups)) if isinstance(one, str)}
    groups = [group for name, group in settings.groups.items() if name in member_of]
    if not groups:
        raise TokenRefused("forbidden", "whom it belongs to is in none of the groups that reach anything")
    first, *others = (Grant(group.upstreams, group.tools) for group in groups)
    return first._replace(others=tuple(others)), any(group.admin for group in groups)


def _limit(settings: IssuerSettings, claims: Mapping[str, Any]) -> int | None:
    value = _claim(claims, settings.claims.calls_per_minute)
    if value is None:
        return settings.calls_per_minute
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise TokenRefused("forbidden", f"its limit is not a number above 0 ({settings.claims.calls_per_minute})")
    return value


def _toolset(settings: IssuerSettings, claims: Mapping[str, Any]) -> str | None:
    if settings.claims.toolset is None:
        return settings.toolset
    value = _claim(claims, settings.claims.toolset)
    if value is None:
        return settings.toolset
    if not isinstance(value, str) or not value:
        raise TokenRefused("forbidden", f"its toolset is not a name ({settings.claims.toolset})")
    return value


def _claim(claims: Mapping[str, Any], name: str | None) -> Any:
    return None if name is None else claim_in(claims, name)


def _words(value: Any) -> Iterable[str]:
    return [word for one in _listed(value) if isinstance(one, str) for word in one.split()]


def _listed(value: object) -> Iterable[Any]:
    return value if is_list(value) else [value]


def _moment(claims: Mapping[str, Any], name: str) -> float | None:
    """Return a time in a claim; None if there is none. Raises TokenRefused if it is not a time."""
    value = claims.get(name)
    if value is None:
        return None
    if not is_finite(value):
        raise TokenRefused("wrong", f"it has a time that is none ({name})")
    return float(value)
