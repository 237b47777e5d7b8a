"""The folder in which running gateways can be found: the user's own, closed to everybody else."""

import os
import stat
import sys
import warnings
from contextlib import suppress
from pathlib import Path

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600

_APP = "mcp-gateway"
_NAMED = "XDG_RUNTIME_DIR"


def folders() -> tuple[Path, ...]:
    """Return the possible folders, best first: in the user's runtime folder, or in the folder for data."""
    import platformdirs  # here, because most commands do not need it

    found: list[Path] = []
    with warnings.catch_warnings():
        # platformdirs warns when it falls back from a runtime folder that is missing or not private, which is fine.
        warnings.simplefilter("ignore")
        with suppress(OSError):  # somebody else owns the folder of last resort
            found.append(platformdirs.user_runtime_path(_APP, appauthor=False))
        found.append(platformdirs.user_data_path(_APP, appauthor=False) / "run")
    return tuple(found)


def own_folder() -> Path:
    """Return the first usable folder, created if it is missing.

    Raises:
        OSError: none can be created, or none is private to this user.
    """
    problem: OSError | None = None
    for folder in folders():
        try:
            _make(folder)
            if is_private(folder):
                return folder
            raise PermissionError(f"{folder} is not this user's alone")
        except OSError as error:
            problem = problem or error
    raise problem or OSError("there is no folder for running gateways")


def existing_folders() -> tuple[Path, ...]:
    """Return the folders that exist and can be trusted; for root, first that of a service, if one is named."""
    own = tuple(folder for folder in folders() if is_private(folder))
    service = _of_service()
    return own if service is None else (service, *own)


def passed_over() -> str | None:
    """Say that $XDG_RUNTIME_DIR is set and not used, and what is used in its place; None if it is used, or not set."""
    named = os.environ.get(_NAMED)
    if not named or sys.platform != "linux" or _of_service() is not None:
        return None
    used = folders()[0]
    if used.parent == Path(named):
        return None
    return f"${_NAMED} ({named}) is not this user's own folder with mode 700, so {used} is used in its place"


def _of_service() -> Path | None:
    """Return the folder that $XDG_RUNTIME_DIR names, if root asks and it is the private one of another user.

    Such is the folder of a systemd unit with a user of its own. Root reaches what is in it, and serves nothing there.
    """
    named = os.environ.get(_NAMED)
    if not named or sys.platform == "win32" or os.geteuid() != 0:
        return None
    folder = Path(named) / _APP
    try:
        above, found = folder.parent.lstat(), folder.lstat()
    except OSError:
        return None
    are_folders = stat.S_ISDIR(above.st_mode) and stat.S_ISDIR(found.st_mode)
    is_theirs = above.st_uid == found.st_uid != 0
    is_closed = not above.st_mode & 0o022 and not found.st_mode & 0o077
    return folder if are_folders and is_theirs and is_closed else None


def is_private(folder: Path) -> bool:
    """Whether it is a folder, not a link to one, that belongs to this user and is closed to everybody else."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode):
        return False
    if sys.platform == "win32":  # access lists close the user's own folders to others
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _make(folder: Path) -> None:
    missing = [folder] if not folder.exists() else []
    for parent in folder.parents if missing else ():
        if parent.exists():
            break
        missing.append(parent)
    for one in reversed(missing):
        one.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    if sys.platform != "win32" and not folder.is_symlink() and folder.stat().st_uid == os.geteuid():
        folder.chmod(PRIVATE_FOLDER)  # the umask limits the mode above, and older folders may have a wider one
