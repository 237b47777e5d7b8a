"""Headers that say who calls: claims of the token with which a principal has come, for upstreams that trust them."""

import re
from collections.abc import Mapping
from typing import Any

from gateway.config.claim_header_settings import PRINCIPAL
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.claims import CameWith, claim_in
from gateway.core.model.json_values import is_list
from gateway.errors import LoginFailed

_LONGEST = 2_000
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
"""What arrives as it was sent, and can begin no header of its own: printable ASCII, without spaces at its ends."""
_SEPARATOR = ","


def caller_headers(
    upstream: str, settings: UpstreamSettings, principal: str, came_with: CameWith | None
) -> dict[str, str]:
    """Return the headers that say that `principal` calls, who has come with that token.

    A list is joined with commas. Raises LoginFailed if a claim is missing, or cannot be sent; it names no value.
    """
    is_meant = came_with is not None and settings.claims_from in (None, came_with.issuer)
    claims: Mapping[str, Any] = came_with.claims if came_with is not None and is_meant else {}
    headers: dict[str, str] = {}
    for header, claim in settings.headers_from_claims.items():
        value = principal if claim == PRINCIPAL else claim_in(claims, claim)
        if value is None or value in ("", []):
            raise LoginFailed(
                upstream,
                f"is told who calls by the claim {claim} (headers_from_claims), and whoever calls came without it",
                remedy=_remedy(settings, claim),
            )
        text = _text(value)
        if text is None or len(text) > _LONGEST or _VALUE.fullmatch(text) is None:
            raise LoginFailed(
                upstream,
                f"is told who calls by the claim {claim} (headers_from_claims), which cannot be sent as a header: "
                f"it is not printable ASCII text of at most {_LONGEST:,} characters",
                remedy="send another claim",
            )
        headers[header.lower()] = text
    return headers


def _remedy(settings: UpstreamSettings, claim: str) -> str:
    issuer = "the issuer" if settings.claims_from is None else f"the issuer {settings.claims_from}"
    return f"call with a token of {issuer} that has {claim}: the identity provider has to put it into access tokens"


def _text(value: Any) -> str | None:
    """Return a claim as text; None if it is nothing that a header could say."""
    if is_list(value):
        parts = [_text(each) for each in value if not is_list(each)]
        # A comma in one would make two of it.
        is_clear = len(parts) == len(value) and all(part and _SEPARATOR not in part for part in parts)
        return _SEPARATOR.join(part for part in parts if part) if is_clear else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else None
