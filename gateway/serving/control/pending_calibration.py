"""Calibrate the hosts of running gateways, and of those that start soon, at the command line's request.

A gateway on stdio is started by its host. So the request is also saved in the runtime directory: a host that must be
restarted to see new tools finds them in the gateway that it then starts.
"""

import json
import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.config.list_facts import CALIBRATE_FILE
from gateway.core.model.json_safe import is_finite
from gateway.errors import InvalidRequest
from gateway.serving.control import protocol
from gateway.system.runtime_dir import PRIVATE_FILE

if TYPE_CHECKING:
    from gateway.routing.calibration import Calibration

logger = logging.getLogger(__name__)

LONGEST_SECONDS = 24 * 3_600.0
"""Maximum time for which a request is valid."""

_LARGEST = 4_096


def answer(calibration: "Calibration", request: Mapping[str, Any]) -> dict[str, Any]:
    """Begin or continue calibrating (`until`, `host`), or end it (`close`). Return the progress of each host.

    Raises InvalidRequest if `until` is missing or invalid.
    """
    if request.get("close") is True:
        calibration.close()
    else:
        until, host = _read_request(request)
        calibration.open(until, host)
    return calibration.progress()


def save_pending_calibration(folder: Path, until: float, host: str | None) -> Path:
    """Save a request for gateways that start until then to calibrate their hosts. Raises OSError."""
    path = folder / CALIBRATE_FILE
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(protocol.format_line({"until": until, "host": host}))
    return path


def apply_pending_calibration(folder: Path, calibration: "Calibration") -> None:
    """Begin calibrating if there is a valid saved request."""
    with suppress(OSError, ValueError, InvalidRequest):
        with (folder / CALIBRATE_FILE).open("rb") as file:
            pending = protocol.parse_line(file.read(_LARGEST))
        until, host = _read_request(pending)
        calibration.open(until, host)
        logger.info("calibrating %s, as requested by `mcp-gateway calibrate`", json.dumps(host) if host else "any host")


def _read_request(said: Mapping[str, Any]) -> tuple[float, str | None]:
    until, host = said.get("until"), said.get("host")
    if not isinstance(until, int | float) or not is_finite(until):
        raise InvalidRequest("calibrating needs an end time (until)")
    if not 0 < until - time.time() <= LONGEST_SECONDS:
        raise InvalidRequest("the end time is past, or too far away")
    return float(until), host if isinstance(host, str) and host else None
