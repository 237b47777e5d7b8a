"""`mcp-gateway calibrate --export FILE`: what a calibration showed, as a file to send in."""

import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import typer

from gateway._version import __version__
from gateway.cli.exit_codes import refuse_to_guess
from gateway.cli.terminal import remark
from gateway.core.profiles.calibrate_profile import PARTS, When
from gateway.core.profiles.export_calibration import ExportedHost, calibration_records
from gateway.core.profiles.matrix import matrix_text
from gateway.errors import GatewayError
from gateway.system.files import write_new_file

_BLOCKS = frozenset(block for blocks in PARTS.values() for block in blocks)
_WHEN: Mapping[str, When] = {"at once": "at once", "a turn late": "a turn late", "not": "not"}


def check_export(file: Path, *, yes: bool) -> None:
    """Check that the file can be written, before anybody waits for a host.

    Raises:
        GatewayError: it is there already, or its folder is not.
        TyperException: nobody can be asked whether to write it.
    """
    if file.exists():
        raise _is_there(file)
    if not file.absolute().parent.is_dir():
        raise GatewayError(f"{file.absolute().parent} is not a folder", remedy="make it first")
    if not yes and not sys.stdin.isatty():
        refuse_to_guess(" whether to write the file: give --yes")


def export_calibration(host: Mapping[str, Any], file: Path, *, yes: bool) -> bool:
    """Show what the file gets, and write it once that is agreed to; return whether it was written.

    Raises:
        GatewayError: the gateway does not say what was read, or the file cannot be written.
    """
    text = _text(host)
    remark(f"\nThis is all that {file} gets:\n\n{text}")
    if not yes and not typer.confirm(f"Write {file}?", default=True, err=True):
        remark(f"{file} is not written")
        return False
    _write(file, text.encode("utf-8"))
    return True


def _text(host: Mapping[str, Any]) -> str:
    said: Mapping[str, str] = host.get("read") or {}
    read: dict[str, When] = {block: _WHEN[when] for block, when in said.items() if block in _BLOCKS and when in _WHEN}
    if not read:
        remedy = "restart the gateway, so that it has this version too, and calibrate again"
        raise GatewayError("the running gateway does not say what was read", remedy=remedy)
    who = ExportedHost(host["name"] or "", host["version"], host["model"], date.today(), __version__)  # noqa: DTZ011
    return matrix_text(calibration_records(who, read))


def _write(file: Path, content: bytes) -> None:
    try:
        written = write_new_file(file, content)
    except OSError as error:
        raise GatewayError(f"{file} cannot be written: {error.strerror or error}") from None
    if not written:
        raise _is_there(file)


def _is_there(file: Path) -> GatewayError:
    return GatewayError(f"{file} is there already", remedy="give a new file, or remove this one")
