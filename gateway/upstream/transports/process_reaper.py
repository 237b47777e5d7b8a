"""End all upstream processes when the gateway ends, even if it is killed.

A gateway that is killed (SIGKILL, out of memory, a crash) cannot shut anything down, and a child that ignores its
closed input would stay forever. Linux's own solution (PR_SET_PDEATHSIG) reaches only the direct child, is bound to the
thread that started it, and needs code between fork and exec, which a process with threads must not have. So a watch
runs beside the gateway: a shell of 1 MB that reads the ids of process groups from a pipe. When the pipe ends, because
the gateway has ended, the watch ends the groups still in its list, and then itself. It runs while there is at least
one group, in a session of its own, so that signals to the gateway's group do not reach it.

On Windows the Job Objects of `platforms` do this.
"""

import logging
import os
import subprocess
import threading
from contextlib import suppress

import anyio.to_thread

from gateway.upstream.transports.platforms import WINDOWS

logger = logging.getLogger(__name__)

SHELL = "/bin/sh"

GENTLE_SECONDS = 10
"""The time to end after SIGTERM for a launcher that may be installing: killing it may leave its cache broken."""

_WATCH = f"""
trap '' HUP INT QUIT TERM
groups= gentle= asked=
without() {{
  left=
  for one in $1; do [ "$one" = "$group" ] || left="$left $one"; done
}}
while read -r sign group; do
  without "$groups"; groups=$left
  without "$gentle"; gentle=$left
  without "$asked"; asked=$left
  case $sign in
    +) groups="$groups $group" ;;
    =) gentle="$gentle $group" ;;
    :) asked="$asked $group" ;;
  esac
done
[ -n "$groups$gentle$asked" ] || exit 0
for one in $groups $gentle; do kill -s TERM -- "-$one"; done
sleep 1
for one in $groups; do kill -s KILL -- "-$one"; done
second=1
while [ $second -lt {GENTLE_SECONDS} ]; do
  left=
  for one in $gentle $asked; do kill -s 0 -- "-$one" && left="$left $one"; done
  [ -n "$left" ] || exit 0
  sleep 1
  second=$((second + 1))
done
for one in $gentle $asked; do kill -s KILL -- "-$one"; done
"""
"""The script of the watch. It reads a sign and a group id from each line: `+` a group to end, `=` one to end gently,
`:` one that was already asked to end (a second SIGTERM would interrupt npm's cleanup), anything else: it is gone.
"""

_REAP_SECONDS = 2.0


class ProcessReaper:
    """The watch over the upstream processes of this gateway. `guard` and `release` may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: dict[int, str] = {}
        """The sign that was last sent for each group."""
        self._shell: subprocess.Popen[bytes] | None = None

    def guard(self, group: int, *, gently: bool = False) -> None:
        """End this process group when the gateway is gone; with `gently`, after time to end by itself."""
        self._tell(group, "=" if gently else "+")

    def asked(self, group: int) -> None:
        """Record that the group was asked to end (SIGTERM), so that it is not asked again when the gateway is gone."""
        self._tell(group, ":")

    async def release(self, group: int) -> None:
        """Remove a group that has ended, since its id may be reused. The watch ends with the last group."""
        with self._lock:
            self._groups.pop(group, None)
            if self._shell is None:
                return
            self._say(f"- {group}")
            if self._groups:
                return
            shell, self._shell = self._shell, None
        # Bounded, and not cancelled halfway: a watch that nobody waits for would stay a zombie.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_dismiss, shell)

    def _tell(self, group: int, sign: str) -> None:
        with self._lock:
            self._groups[group] = sign
            if self._shell is None or not self._say(f"{sign} {group}"):
                self._start()

    def _start(self) -> None:
        if self._shell is not None:  # someone killed it, so this does not wait
            _dismiss(self._shell)
        try:
            self._shell = subprocess.Popen(
                [SHELL, "-c", _WATCH],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.defpath},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            self._shell = None
            logger.debug("no watch for orphaned processes: %s", error)
            return
        for group, sign in self._groups.items():
            self._say(f"{sign} {group}")

    def _say(self, line: str) -> bool:
        assert self._shell is not None
        assert self._shell.stdin is not None
        try:
            os.write(self._shell.stdin.fileno(), f"{line}\n".encode())
        except OSError:
            return False
        return True


def _dismiss(shell: "subprocess.Popen[bytes]") -> None:
    """Close the pipe to a watch whose list is empty, and wait for its end."""
    if shell.stdin is not None:
        with suppress(OSError):
            shell.stdin.close()
    try:
        shell.wait(_REAP_SECONDS)
    except subprocess.TimeoutExpired:
        shell.kill()
        shell.wait()


class NoWatch:
    """The watch for systems that end a process's children themselves."""

    def guard(self, group: int, *, gently: bool = False) -> None:
        """Do nothing."""

    def asked(self, group: int) -> None:
        """Do nothing."""

    async def release(self, group: int) -> None:
        """Do nothing."""


WATCH: ProcessReaper | NoWatch = NoWatch() if WINDOWS else ProcessReaper()
"""The watch of this process."""
