"""The challenge of a 401 or 403: WWW-Authenticate (RFC 9110, 11.6.1), as for access tokens (RFC 6750, RFC 9728)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from urllib.request import parse_http_list

_SCHEME = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:[ \t]+(.*))?", re.DOTALL)
_PARAMETER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]++)[ \t]*+=[ \t]*(.*)", re.DOTALL)
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,200}")
_LONGEST = 8 * 1024
_MOST_SCOPES = 50


NONCE_WANTED = "use_dpop_nonce"
PROOF_ERRORS = (NONCE_WANTED, "invalid_dpop_proof")


@dataclass(frozen=True)
class Challenge:
    """A challenge for an access token. Without one, everything is empty."""

    scheme: str = ""
    """`bearer` or `dpop`."""
    error: str = ""
    scopes: tuple[str, ...] | None = None
    """The scopes that are needed; None if the upstream does not say."""
    resource_metadata: str | None = None
    """The URL of the upstream's own metadata."""
    takes_proofs: bool = False
    """Whether it takes tokens that are bound to a key (DPoP), whatever else it takes."""
    proof_error: str = ""
    """What is wrong with the proof that came with the token (RFC 9449, section 12.2): one of `PROOF_ERRORS`."""

    @property
    def wants_scopes(self) -> bool:
        """Whether the token is good, but does not allow enough."""
        return self.error == "insufficient_scope"

    @property
    def names_server(self) -> bool:
        """Whether it leads to an authorization server, so that a login is what it wants."""
        return self.resource_metadata is not None or self.scopes is not None


def challenge_in(headers: Iterable[str]) -> Challenge:
    """Return the challenge for an access token in the WWW-Authenticate headers of a response.

    If there are several, those of one scheme after the other, the first that names metadata counts, else the first.
    """
    found = [_challenge(*each) for each in _challenges(headers) if each[0] in ("bearer", "dpop")]
    if not found:
        return Challenge()
    proofs = [each.error for each in found if each.scheme == "dpop"]
    selected = next((each for each in found if each.resource_metadata), found[0])
    error = next((error for error in proofs if error in PROOF_ERRORS), "")
    return replace(selected, takes_proofs=bool(proofs), proof_error=error)


def _challenges(headers: Iterable[str]) -> list[tuple[str, dict[str, str]]]:
    found: list[tuple[str, dict[str, str]]] = []
    for header in headers:
        # Commas separate both challenges and the parameters of one.
        for part in map(str.strip, parse_http_list(header[:_LONGEST])):
            parameter = _PARAMETER.fullmatch(part)
            if parameter is None:
                scheme = _SCHEME.fullmatch(part)
                if scheme is None:
                    continue
                found.append((scheme[1].lower(), {}))
                parameter = _PARAMETER.fullmatch(scheme[2] or "")
            if parameter is not None and found:
                found[-1][1].setdefault(parameter[1].lower(), _unquoted(parameter[2]))
    return found


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value


def _challenge(scheme: str, parameters: Mapping[str, str] = MappingProxyType({})) -> Challenge:
    scope = parameters.get("scope")
    return Challenge(
        scheme,
        parameters.get("error", ""),
        None if scope is None else scopes_in(scope),
        parameters.get("resource_metadata") or None,
    )


def scopes_in(text: str, most: int = _MOST_SCOPES) -> tuple[str, ...]:
    """Return the scopes in a list separated by spaces, each once, without those that are not (RFC 6749, 3.3)."""
    return tuple(dict.fromkeys(scope for scope in text.split() if _SCOPE.fullmatch(scope)))[:most]
