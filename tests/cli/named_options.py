"""The options that a command's notes and errors name: the command has to have them."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import typer

from gateway.cli.app import application

_OF_OTHERS = re.compile(r"`[^`]*`|\bmcp-gateway \w.*|'[^']*'|\"[^\"]*\"|\((?:[a-z]+ )+--[^)]*\)|, often --stdio\b")
"""Whole commands, which have their own options, and what was quoted from elsewhere."""
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_SAID = re.compile(r"^(?:note|left out|error): .*", re.MULTILINE)


@cache
def _application() -> Any:
    return typer.main.get_command(application())


def command_of(arguments: Sequence[str]) -> Any:
    """The command that these arguments run."""
    found = _application()
    for word in arguments:
        found = getattr(found, "commands", {}).get(word, found)
    return found


def foreign_options(arguments: Sequence[str], said: str) -> set[str]:
    """The options that a command's own lines on stderr offer, and that it does not have."""
    has = {option for one in command_of(arguments).params for option in (*one.opts, *one.secondary_opts)}
    lines = "\n".join(_SAID.findall(said))
    return {option for option in _OPTION.findall(_OF_OTHERS.sub("", lines)) if option not in (*has, "--help")}
