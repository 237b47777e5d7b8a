"""Who runs: a file for every gateway that says how to reach it, beside its socket and its log.

A gateway writes its record when it can be asked already and removes it when it ends. One that was killed leaves its
files behind; whoever looks next finds that nobody answers there, and takes them away.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from gateway.serving.control.endpoint import Endpoint
from gateway.system.files import write_file
from gateway.system.runtime_dir import existing_folders

_SUFFIX = ".json"
_LARGEST = 64 * 1024
_PROBE_SECONDS = 2.0


@dataclass(frozen=True)
class GatewayRecord:
    """One running gateway: process, when it was started (seconds since 1970), its name, file and control socket."""

    pid: int
    started: float
    name: str
    version: str
    config: str | None
    log: str | None
    endpoint: Endpoint

    @property
    def stem(self) -> str:
        """What its files are called, without the endings."""
        return stem(self.pid, self.started)


def stem(pid: int, started: float) -> str:
    """What the files of a process are called: an id may come again, together with its time it does not."""
    return f"{pid}-{int(started)}"


def write_record(folder: Path, record: GatewayRecord) -> Path:
    """Write the record, whole or not at all, for its owner alone. Raises OSError."""
    path = folder / (record.stem + _SUFFIX)
    write_file(path, json.dumps(asdict(record)).encode())
    return path


def running() -> list[GatewayRecord]:
    """The gateways of this user that run, the oldest first. What others have left behind is removed."""
    found: list[GatewayRecord] = []
    for folder in existing_folders():
        found += _running_in(folder)
    return sorted(found, key=lambda record: record.started)


def _running_in(folder: Path) -> Iterator[GatewayRecord]:
    known: set[str] = set()
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        record = _read(path)
        if record is None:
            continue
        known.add(path.stem)
        if _answers(record.endpoint):
            yield record
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)
                record.endpoint.remove()
    for path in folder.glob("*.sock"):
        # Killed between opening its socket and writing its record. One that is about to write it is alive.
        if path.stem not in known and not _is_alive(path.stem.partition("-")[0]):
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _read(path: Path) -> GatewayRecord | None:
    """The record; None for a file that is none, or is gone by now."""
    try:
        with path.open("rb") as file:
            fields = cast("dict[str, Any]", json.loads(file.read(_LARGEST)))
        endpoint = Endpoint(**fields.pop("endpoint"))
        return GatewayRecord(endpoint=endpoint, **fields)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _answers(endpoint: Endpoint) -> bool:
    """Whether somebody listens there; one who is too busy to say so counts as running."""
    try:
        endpoint.connect(_PROBE_SECONDS).close()
    except (ConnectionRefusedError, FileNotFoundError):
        return False
    except OSError:
        return True
    return True


def _is_alive(pid: str) -> bool:
    if not pid.isdecimal() or os.name != "posix":
        return True  # not ours to judge
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
