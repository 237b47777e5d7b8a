"""Which of the gateway's environment variables a child process gets: the few it needs to run at all, no more."""

import sys
from collections.abc import Mapping

_POSIX = frozenset(
    {
        "PATH",  # to find interpreters and programs
        "HOME",  # caches and settings of npx, uvx, browsers
        "USER",
        "LOGNAME",
        "SHELL",
        "TERM",
        "LANG",  # the encoding of what it writes; LC_* too, below
        "TMPDIR",
        "TZ",
    }
)

_WINDOWS = frozenset(
    {
        "ALLUSERSPROFILE",
        "APPDATA",
        "COMMONPROGRAMFILES",
        "COMMONPROGRAMFILES(X86)",
        "COMMONPROGRAMW6432",
        "COMPUTERNAME",
        "COMSPEC",  # what starts .cmd and .bat files
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "NUMBER_OF_PROCESSORS",
        "OS",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "PROGRAMDATA",
        "PROGRAMFILES",
        "PROGRAMFILES(X86)",
        "PROGRAMW6432",
        "PUBLIC",
        "SYSTEMDRIVE",
        "SYSTEMROOT",  # sockets do not work without it
        "TEMP",
        "TMP",
        "USERNAME",
        "USERPROFILE",
        "WINDIR",
    }
)


def environment(
    given: Mapping[str, str], inherited: Mapping[str, str], *, platform: str = sys.platform
) -> dict[str, str]:
    """The environment of a child: what its settings give it, over the few variables taken from `inherited`."""
    windows = platform == "win32"
    needed = _WINDOWS if windows else _POSIX
    # On Windows `Path` and `PATH` are one variable: a child must not be given both.
    replaced = {name.upper() for name in given} if windows else given.keys()
    kept = {
        name: value
        for name, value in inherited.items()
        # A value that begins with "()" is a shell function, which no server needs and some shells would run.
        if ((name.upper() if windows else name) in needed or name.startswith("LC_"))
        and not value.startswith("()")
        and (name.upper() if windows else name) not in replaced
    }
    return {**kept, **given}
