"""A network namespace with nothing but its own loopback, so that a host under test cannot reach the internet."""

import fcntl
import shutil
import socket
import struct
import subprocess
from collections.abc import Sequence

_SIOCSIFFLAGS = 0x8914
_UP = 1


def isolated(command: Sequence[str]) -> list[str] | None:
    """The command that runs `command` in such a namespace; None where this system does not allow one."""
    if (unshare := shutil.which("unshare")) is None:
        return None
    if subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False).returncode:
        return None
    return [unshare, "-rn", *command]


def raise_loopback() -> None:
    """Make 127.0.0.1 reachable inside a new namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _UP))
