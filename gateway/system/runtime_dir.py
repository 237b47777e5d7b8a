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
    """Return the folders that exist and can be trusted."""
    return tuple(folder for folder in folders() if is_private(folder))


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
