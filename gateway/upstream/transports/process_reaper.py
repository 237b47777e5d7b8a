"""No upstream process outlives the gateway, not even one that is killed.

A gateway that is killed (SIGKILL, out of memory, a crash) ends nothing in good order, and a child that does not mind
its closed input would stay for ever. The kernel's own answer on Linux (PR_SET_PDEATHSIG) reaches only the direct child,
is bound to the thread that started it, and needs code between fork and exec, where a process with threads may not have
any. So a watch stands beside the gateway: a shell of 1 MB that reads the ids of process groups from a pipe. When the
pipe ends, because the gateway has, it ends the groups that are still in its list, and then itself. It runs while there
is at least one group, in a session of its own, so that what is sent to the gateway's group does not meet it.

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
"""For what may be installing to end after SIGTERM: a cache that it is killed in may stay broken."""

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
"""`+` a group to end, `=` one to end gently, `:` one that was asked to end already (a second SIGTERM would cut short
what npm takes back on the first), and anything else: it is gone.
"""

_REAP_SECONDS = 2.0


class ProcessReaper:
    """The watch of this process. `guard` and `release` may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: dict[int, str] = {}
        """Each with the sign that it was last told by."""
        self._shell: subprocess.Popen[bytes] | None = None

    def guard(self, group: int, *, gently: bool = False) -> None:
        """From now on, end this process group when the gateway is gone; `gently`, with time to end by itself."""
        self._tell(group, "=" if gently else "+")

    def asked(self, group: int) -> None:
        """The group was asked to end (SIGTERM), and has its time; when the gateway is gone, it is not asked again."""
        self._tell(group, ":")

    async def release(self, group: int) -> None:
        """The group is ended, and its id may become another's; with the last one the watch ends too."""
        with self._lock:
            self._groups.pop(group, None)
            if self._shell is None:
                return
            self._say(f"- {group}")
            if self._groups:
                return
            shell, self._shell = self._shell, None
        # Bounded, and not to be given up half-way: a watch that nobody waits for stays a zombie.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_dismiss, shell)

    def _tell(self, group: int, sign: str) -> None:
        with self._lock:
            self._groups[group] = sign
            if self._shell is None or not self._say(f"{sign} {group}"):
                self._start()

    def _start(self) -> None:
        if self._shell is not None:  # it was killed by someone: there is nothing to wait for
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
    """Close the pipe to a watch that has nothing in its list, and wait for its end."""
    if shell.stdin is not None:
        with suppress(OSError):
            shell.stdin.close()
    try:
        shell.wait(_REAP_SECONDS)
    except subprocess.TimeoutExpired:
        shell.kill()
        shell.wait()


class NoWatch:
    """Where the system itself ends what an ended process has left."""

    def guard(self, group: int, *, gently: bool = False) -> None:
        """Nothing to do."""

    def asked(self, group: int) -> None:
        """Nothing to do."""

    async def release(self, group: int) -> None:
        """Nothing to do."""


WATCH: ProcessReaper | NoWatch = NoWatch() if WINDOWS else ProcessReaper()
"""The one of this process."""
