"""The options `--token` and `--principal`: act as somebody whom the configuration knows."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from gateway.cli.exit_codes import refuse
from gateway.cli.terminal import remark
from gateway.cli.toolset_option import narrowed
from gateway.config.find_config import cache_folder
from gateway.config.schema import Settings
from gateway.config.setting_types import RESERVED_PRINCIPALS
from gateway.core.model.caller import Caller
from gateway.core.model.grant import EVERYTHING, Grant
from gateway.core.model.json_values import as_object
from gateway.core.near_names import which_name
from gateway.errors import ConfigError

TokenName = Annotated[
    str | None, typer.Option("--token", metavar="NAME", help="As a host with this token of the configuration.")
]
PrincipalName = Annotated[str | None, typer.Option("--principal", metavar="NAME", help="As a host of this principal.")]


@dataclass(frozen=True)
class NamedCaller:
    """Somebody whom the configuration knows: the principal, what it reaches, and the token that says so.

    `grant` is what the toolsets leave of it.
    """

    principal: str = Caller().principal
    grant: Grant = EVERYTHING
    profile: str | None = None
    token: str | None = None
    toolsets: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Who it is."""
        return f"the token {self.token!r}" if self.token is not None else f"the principal {self.principal!r}"

    def reached_of(self, settings: Settings) -> Settings:
        """Return the settings with the upstreams that exist for this caller: no other has to be started."""
        reached = {name: one for name, one in settings.upstreams.items() if self.grant.reaches(name)}
        return settings.model_copy(update={"upstreams": reached})

    def with_toolset(self, settings: Settings, toolset: str | None) -> "NamedCaller":
        """Return the same, as a host that has chosen this toolset. Raises ConfigError if it does not exist."""
        if toolset is None:
            return self
        toolsets = tuple(dict.fromkeys((*self.toolsets, toolset)))
        return replace(self, toolsets=toolsets, grant=narrowed(self.grant, settings, toolsets))

    def as_caller(self, caller: Caller) -> Caller:
        """Return a caller as this one's host."""
        return replace(caller, principal=self.principal, grant=self.grant, token=self.token, toolsets=self.toolsets)


def named_caller(settings: Settings, token: str | None, principal: str | None) -> NamedCaller:
    """Return whom the options mean; this machine's user if neither is given.

    A principal that no table is about may come from an identity provider: rules may name it, and nothing else is known.

    Raises:
        ConfigError: there is no such token, or several tokens of the principal reach different things.
    """
    if token is not None and principal is not None:
        refuse("give either --token or --principal, not both")
    if token is not None:
        return _with_token(settings, token)
    if principal is None or principal in RESERVED_PRINCIPALS:
        return NamedCaller(principal or Caller().principal)
    found = _of_principal(settings, principal)
    if not found:
        remark(f"no token or person has the principal {principal!r}: only the rules are asked")
        return NamedCaller(principal)
    if any(one.grant != found[0].grant for one in found):
        names = ", ".join(one.token for one in found if one.token is not None)
        remedy = f"name one of its tokens with --token: {names}"
        raise ConfigError(f"the principal {principal!r} reaches different things with each token", remedy=remedy)
    return found[0]


def _with_token(settings: Settings, name: str) -> NamedCaller:
    from gateway.serving.access.tokens import identified

    tokens = settings.access.tokens
    if name not in tokens:
        remedy = which_name(name, tokens, none="`mcp-gateway token add NAME` makes one")
        raise ConfigError(f"there is no token {name!r}", where="--token", remedy=remedy)
    found = identified(name, tokens[name])
    toolsets = () if found.toolset is None else (found.toolset,)
    grant = narrowed(found.grant, settings, toolsets)
    return NamedCaller(found.principal, grant, found.profile, name, toolsets)


def _of_principal(settings: Settings, principal: str) -> list[NamedCaller]:
    """Return the tokens of a principal, and the person of this name."""
    from gateway.serving.authorization.people import grant_of, may_log_in

    tokens = settings.access.tokens
    found = [_with_token(settings, name) for name, one in tokens.items() if (one.principal or name) == principal]
    server, reach = settings.access.authorization_server, settings.access.people.get(principal)
    if reach is None and server is not None and server.oidc is not None and may_log_in(principal, server.oidc):
        reach = server.oidc
    if reach is not None:
        toolsets = () if reach.toolset is None else (reach.toolset,)
        grant = narrowed(grant_of(reach), settings, toolsets)
        found.append(NamedCaller(principal, grant, reach.profile, toolsets=toolsets))
    return found


def remembered_tools(settings: Settings) -> Mapping[str, Sequence[Mapping[str, object]]]:
    """Return the tools that each upstream listed last; an upstream that is not known yet is left out."""
    from gateway.upstream import Catalogues

    cache = cache_folder(os.environ)
    if cache is None:
        return {}
    catalogues = Catalogues(cache / "catalogues")
    recalled = {name: catalogues.recall(one) for name, one in settings.upstreams.items()}
    return {name: [as_object(tool) for tool in one.tools] for name, one in recalled.items() if one is not None}


def remembered_names(settings: Settings) -> Mapping[str, Sequence[str]]:
    """Return the names of the tools that each upstream listed last."""
    return {name: [str(tool.get("name")) for tool in tools] for name, tools in remembered_tools(settings).items()}
