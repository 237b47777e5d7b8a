"""The logins to upstreams, for a gateway and for commands."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from gateway.config.find_config import state_folder
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.claims import CameWithOf

if TYPE_CHECKING:
    from gateway.upstream.authorization.login_desk import LoginDesk
    from gateway.upstream.authorization.ports import Logins


def open_logins(
    settings: Settings,
    settings_of: "Callable[[str], UpstreamSettings | None]",
    on_end: "Callable[[str, str, str | None], None]" = lambda upstream, principal, issuer: None,
    *,
    over_http: bool = False,
    came_with: CameWithOf = lambda _: None,
) -> "tuple[Logins, LoginDesk]":
    """Return the logins to the upstreams that have these settings, and the desk that offers them.

    `on_end` is called with each login that ends there; see `LoginDesk`. `came_with` as for `run_gateway`.
    """
    from gateway.upstream.authorization.login_desk import LoginDesk
    from gateway.upstream.authorization.logins import UpstreamLogins
    from gateway.upstream.authorization.vault import open_vault

    public_url = settings.gateway.public_url if over_http else None
    vault = open_vault(settings.logins, state_folder(os.environ))

    def subject_of(principal: str) -> str | None:
        found = came_with(principal)
        return None if found is None else found.token

    logins = UpstreamLogins(vault, settings_of, public_url=lambda: public_url, subject_of=subject_of)
    return logins, LoginDesk(logins, on_end)
