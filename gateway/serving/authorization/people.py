"""Who may approve hosts, and what each may reach: the people of the configuration, and those of the company."""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from gateway.config.authorization_settings import OidcSettings, PersonSettings, ReachSettings
from gateway.config.setting_types import PRINCIPAL, RESERVED_PRINCIPALS
from gateway.core.model.grant import Grant
from gateway.core.model.json_values import as_object

PASSPHRASE = "passphrase"  # noqa: S105 - a way to log in, no passphrase
_LONGEST_PRINCIPAL = 100


class People:
    """The people at present. A change of the configuration applies at once, also to tokens that they have given."""

    def __init__(self, people: Mapping[str, PersonSettings], oidc: OidcSettings | None) -> None:
        self._people = dict(people)
        self._oidc = oidc
        self._refused: set[str] = set()

    def reconfigure(self, people: Mapping[str, PersonSettings]) -> None:
        """Apply changed settings."""
        self._people = dict(people)
        self._refused.clear()

    def narrow(self, written: Mapping[str, Any]) -> None:
        """Drop the people whose tables are gone from `[access.people]`, or have another hash, as it is written.

        For a configuration that cannot be applied as a whole: whatever is wrong in it, who was removed stays out. Until
        one can be, they cannot log in with the company's account either, with which they might reach more than before.
        """
        self._refused |= {
            name
            for name, one in self._people.items()
            if name not in written or as_object(written[name]).get("hash") != one.hash
        }

    @property
    def with_passphrase(self) -> Mapping[str, str]:
        """The hashes of the passphrases, by name."""
        known = self._people.items()
        return {name: one.hash for name, one in known if one.hash is not None and name not in self._refused}

    def reach_of(self, principal: str, login: str) -> ReachSettings | None:
        """Return what somebody who has logged in like this may reach; None if they may not use the gateway."""
        if principal in self._refused:
            return None
        if login == PASSPHRASE:
            person = self._people.get(principal)
            return person if person is not None and person.hash is not None else None
        oidc = self._oidc
        if oidc is None or login != oidc.issuer or not may_log_in(principal, oidc):
            return None
        return self._people.get(principal, oidc)


def may_log_in(principal: str, oidc: OidcSettings) -> bool:
    """Whether somebody may log in with the company's account, if the provider says that this is who they are."""
    return is_principal(principal) and any(fnmatchcase(principal, pattern) for pattern in oidc.people)


def is_principal(name: str) -> bool:
    """Whether an identity from elsewhere can be a principal here."""
    return (
        len(name) <= _LONGEST_PRINCIPAL
        and re.fullmatch(PRINCIPAL, name) is not None
        and name not in RESERVED_PRINCIPALS
    )


def grant_of(reach: ReachSettings) -> Grant:
    """Return what somebody reaches, as the rest of the gateway has it."""
    return Grant(reach.upstreams, reach.tools, reach.calls_per_minute)
