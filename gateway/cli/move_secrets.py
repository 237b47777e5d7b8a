"""Offer to move secrets that stand in hosts' files as plain text into the keyring."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from gateway.cli.terminal import remark
from gateway.config.expansion import NoValue
from gateway.config.secret_sources import keep_in_keyring
from gateway.errors import ConfigError
from gateway.hosts.config_files.keyring_secrets import PlainSecret

ToKeyring = Annotated[
    bool | None,
    typer.Option("--keyring/--no-keyring", help="Move plain secrets into the keyring, or do not. Default: ask."),
]


def go_to_keyring(secrets: Sequence[PlainSecret], wanted: bool | None, *, ask: bool) -> bool:
    """Return whether the secrets go into the keyring; if nobody can be asked, say how they can."""
    where = ", ".join(f"{secret.upstream} ({secret.table}.{secret.key})" for secret in secrets)
    if wanted is None and ask and sys.stdin.isatty():
        return typer.confirm(f"Plain secrets: {where}. Move {_them(secrets)} into the keyring?", default=True)
    if wanted is None:
        remark(f"{where}: {'a secret' if len(secrets) == 1 else 'secrets'} in plain text; --keyring would move")
        remark(f"{_them(secrets)} into the keyring, and so do `mcp-gateway secret set NAME` and ${{keyring:NAME}}")
    return wanted or False


def _them(secrets: Sequence[PlainSecret]) -> str:
    return "it" if len(secrets) == 1 else "them"


def store_secrets(secrets: Sequence[PlainSecret]) -> None:
    """Put secrets into the keyring.

    Raises:
        ConfigError: it is locked, or there is none.
    """
    for secret in secrets:
        try:
            keep_in_keyring(secret.entry, secret.value)
        except NoValue as failed:
            remedy = "--no-keyring leaves secrets in the file, which is readable by this user alone"
            raise ConfigError(f"{secret.entry} cannot be stored: {failed}", remedy=remedy) from None
