"""Asking the registry from a command: errors and ages in words."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gateway.cli.command_context import run_until_signal
from gateway.cli.terminal import remark
from gateway.core.fact_words import age_words

if TYPE_CHECKING:
    from gateway.registry.client import RegistryClient

Answer = TypeVar("Answer")


def ask_registry(config: Path | None, ask: "Callable[[RegistryClient], Awaitable[Answer]]") -> Answer | int:
    """Ask the registry of the configuration; the exit code, if a signal ends that.

    Raises:
        RegistryUnavailable: it does not answer.
    """
    # Imported here, because most commands ask nobody.
    from gateway.registry.open_client import open_registry, registry_settings

    client = open_registry(registry_settings(config))
    return run_until_signal(lambda: ask(client))


def say_age(age: float | None) -> None:
    """Say that an answer is an old one, if it is."""
    if age is not None:
        remark(f"the registry does not answer: this is what it said {age_words(age)} ago")
