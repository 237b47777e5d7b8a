"""Records of running gateways: a file for each that says how to reach it, beside its socket and its log.

A gateway writes its record once it accepts commands, and removes it when it ends. One that was killed leaves its files
behind; the next command that looks finds that nothing answers there, and removes them.
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
    """One running gateway: process, time of its start (seconds since 1970), name, files and control socket."""

    pid: int
    started: float
    name: str
    version: str
    config: str | None
    log: str | None
    endpoint: Endpoint
    shared: str | None = None
    """The key by which hosts find it to attach to it (`gateway.serving.shared.attach`); None: they cannot."""

    @property
    def stem(self) -> str:
        """The name of its files without extensions."""
        return stem(self.pid, self.started)


def stem(pid: int, started: float) -> str:
    """Return the base name of a process's files: process ids are reused, but not with the same start time."""
    return f"{pid}-{int(started)}"


def write_record(folder: Path, record: GatewayRecord) -> Path:
    """Write the record atomically, readable only by its owner. Raises OSError."""
    path = folder / (record.stem + _SUFFIX)
    write_file(path, json.dumps(asdict(record)).encode())
    return path


def running() -> list[GatewayRecord]:
    """Return this user's running gateways, oldest first, and remove files left behind by others."""
    found: list[GatewayRecord] = []
    for folder in existing_folders():
        found += running_in(folder)
    return sorted(found, key=lambda record: record.started)


def running_in(folder: Path) -> Iterator[GatewayRecord]:
    """Yield the gateways that run with their records in this folder, and remove files left behind by others."""
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
        # The process was killed between opening its socket and writing its record. One about to write it is alive.
        if path.stem not in known and not is_alive(path.stem):
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _read(path: Path) -> GatewayRecord | None:
    """Return the record, or None if the file is not a record or no longer exists."""
    try:
        with path.open("rb") as file:
            fields = cast("dict[str, Any]", json.loads(file.read(_LARGEST)))
        endpoint = Endpoint(**fields.pop("endpoint"))
        known = GatewayRecord.__dataclass_fields__  # a newer version may say more
        return GatewayRecord(endpoint=endpoint, **{key: value for key, value in fields.items() if key in known})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _answers(endpoint: Endpoint) -> bool:
    """Whether a gateway listens there. One that is too busy to accept counts as running."""
    try:
        endpoint.connect(_PROBE_SECONDS).close()
    except (ConnectionRefusedError, FileNotFoundError):
        return False
    except OSError:
        return True
    return True


def is_alive(stem: str) -> bool:
    """Whether the process with files of this name may be running: certain only if it is not."""
    pid = stem.partition("-")[0]
    if not pid.isdecimal() or os.name != "posix":
        return True  # another user's process: cannot be checked
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
