"""Offer to move secrets that stand in hosts' files as plain text into the keyring."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from gateway.cli.exit_codes import complain
from gateway.cli.terminal import remark
from gateway.config.expansion import NoValue
from gateway.config.secret_sources import has_keyring, keep_in_keyring
from gateway.errors import ConfigError
from gateway.hosts.config_files.keyring_secrets import PlainSecret

ToKeyring = Annotated[
    bool | None,
    typer.Option("--keyring/--no-keyring", help="Move plain secrets into the keyring, or do not. Default: ask."),
]


def go_to_keyring(secrets: Sequence[PlainSecret], wanted: bool | None, *, ask: bool) -> bool:
    """Return whether the secrets go into the keyring; if nobody can be asked, say how they can."""
    where = ", ".join(f"{secret.upstream} ({secret.table}.{secret.key})" for secret in secrets)
    if wanted is None and not has_keyring():
        them, stay = ("a secret", "stays") if len(secrets) == 1 else ("secrets", "stay")
        remark(f"{where}: {them} in plain text, which {stay} in the file: this machine has no usable keyring")
        return False
    if wanted is None and ask and sys.stdin.isatty():
        return typer.confirm(f"Plain secrets: {where}. Move {_them(secrets)} into the keyring?", default=True)
    if wanted is None:
        remark(f"{where}: {'a secret' if len(secrets) == 1 else 'secrets'} in plain text; --keyring would move")
        remark(f"{_them(secrets)} into the keyring, and so do `mcp-gateway secret set NAME` and ${{keyring:NAME}}")
    return wanted or False


def _them(secrets: Sequence[PlainSecret]) -> str:
    return "it" if len(secrets) == 1 else "them"


def store_secrets(secrets: Sequence[PlainSecret], *, may_stay: bool) -> bool:
    """Put secrets into the keyring; return whether that was possible. `may_stay`: ask whether to leave them if not.

    Raises:
        ConfigError: it was not, and they may not stay.
    """
    for secret in secrets:
        try:
            keep_in_keyring(secret.entry, secret.value)
        except NoValue as failed:
            if may_stay:
                complain(f"{secret.entry} cannot be stored: {failed}")
                if not typer.confirm("Leave the secrets in the file, which only you can read?", default=True):
                    raise typer.Abort from None
                return False
            remedy = "--no-keyring leaves secrets in the file, which is readable by this user alone"
            raise ConfigError(f"{secret.entry} cannot be stored: {failed}", remedy=remedy) from None
    return True
