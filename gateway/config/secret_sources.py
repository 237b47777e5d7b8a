"""Secrets kept outside of the configuration: `${file:...}`, `${keyring:...}` and `${cmd:...}`.

Each is read when the configuration is, so a changed secret takes effect at the next reload or start. Reading may block,
within one deadline for all secrets of a configuration.
"""

import os
import shlex
import shutil
import stat
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar, cast

from gateway.config.command_output import command_output
from gateway.config.expansion import NoValue, SecretSources
from gateway.config.find_config import absolute_path
from gateway.core.fact_words import plain, size_words

AnswerT = TypeVar("AnswerT")

SERVICE = "mcp-gateway"
"""The keyring service of entries without one of their own."""

_LARGEST = 64 * 1024
_KEYRING_TIMEOUT = 30.0
"""Seconds for the keyring, which may ask its user to unlock it."""
_TIMEOUT = 60.0
"""Seconds for all secrets of a configuration: a command may ask its user for a fingerprint."""


_WITHOUT_KEYRING = "use ${file:...} or a variable, or install one, such as GNOME Keyring or KeePassXC"


class Keyring(Protocol):
    """What is used of a backend of the package keyring."""

    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


def secret_sources(folder: Path, environ: Mapping[str, str], on_read: Callable[[str], object]) -> SecretSources:
    """Return the sources for a configuration in `folder`, the base of relative paths and where commands run.

    They are for reading it once: their time starts now. `on_read` is called with every secret.
    """
    deadline = time.monotonic() + _TIMEOUT

    def left() -> float:
        return max(0.0, deadline - time.monotonic())

    def noticed(read: Callable[[str], str]) -> Callable[[str], str]:
        def secret(at: str) -> str:
            value = read(at)
            on_read(value)
            return value

        return secret

    readers: SecretSources = {
        "file": lambda path: _from_file(path, folder, environ),
        "keyring": lambda name: _from_keyring(name, min(_KEYRING_TIMEOUT, left())),
        "cmd": lambda command: _from_command(command, folder, environ, left()),
    }
    return {source: noticed(read) for source, read in readers.items()}


def entry_of(name: str) -> tuple[str, str]:
    """Return the keyring's service and user name of an entry: `NAME`, or `SERVICE/NAME` for those of other programs."""
    service, separator, user = name.rpartition("/")
    return (service, user) if separator else (SERVICE, name)


def _keyring() -> Keyring:
    # Imported here, because it looks for backends, and few configurations name an entry.
    import keyring

    return cast("Keyring", keyring.get_keyring())


def has_keyring() -> bool:
    """Whether this machine has a keyring. It may be locked: its user is not asked to unlock it."""
    from keyring.backends import fail

    try:
        return not isinstance(_keyring(), fail.Keyring)
    except Exception:  # what finding a backend raises is up to the backends
        return False


def keep_in_keyring(name: str, value: str) -> None:
    """Store a secret in the keyring, in place of an earlier one of this name. Raises NoValue."""
    service, user = entry_of(name)
    _ask_keyring(lambda: _keyring().set_password(service, user, value), _KEYRING_TIMEOUT)


def find_in_keyring(name: str, seconds: float = _KEYRING_TIMEOUT) -> str | None:
    """Return a secret from the keyring; None if there is none of this name. Raises NoValue if it cannot be asked."""
    service, user = entry_of(name)
    return _ask_keyring(lambda: _keyring().get_password(service, user), seconds) or None


def remove_from_keyring(name: str) -> None:
    """Remove a secret from the keyring. Raises NoValue, also if there is none of this name."""
    service, user = entry_of(name)
    _from_keyring(name, _KEYRING_TIMEOUT)
    _ask_keyring(lambda: _keyring().delete_password(service, user), _KEYRING_TIMEOUT)


def _from_file(path: str, folder: Path, environ: Mapping[str, str]) -> str:
    place = absolute_path(path, folder, environ)
    shown = plain(str(place), 200)
    try:
        with open(place, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise NoValue(
                    f"the file {shown} cannot be read: it is not a regular file", "name a file, or use ${cmd:}"
                )
            content = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or "its name is invalid"
        raise NoValue(f"the file {shown} cannot be read: {why}", "create it, readable by this user alone") from None
    if len(content) > _LARGEST:
        raise NoValue(f"the file {shown} has more than {size_words(_LARGEST)}", "put nothing but the secret into it")
    return _text(content, f"the file {shown}", "put the secret into it, as UTF-8")


def _open_at_once(path: str, flags: int) -> int:
    # A pipe would otherwise wait for a writer; a regular file is read as always.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _from_keyring(name: str, seconds: float) -> str:
    value = find_in_keyring(name, seconds)
    if not value:
        raise NoValue(f"the keyring has no entry {plain(name)}", f"`mcp-gateway secret set {plain(name)}` stores it")
    return value


def _from_command(command: str, folder: Path, environ: Mapping[str, str], seconds: float) -> str:
    try:
        words = shlex.split(command, posix=os.name != "nt")
    except ValueError as error:
        raise NoValue(f"this is not a command line: {error}", "close every quotation mark") from None
    if not words:
        raise NoValue("${cmd:} has no command", "write ${cmd:PROGRAM ARGUMENTS}, which prints the secret")
    program = plain(words[0])
    if not seconds:
        what = f"the command {program} was not run: the secrets before it took {_TIMEOUT:.0f} s"
        raise NoValue(what, "see to those first")
    try:
        found = shutil.which(words[0], path=environ.get("PATH")) or words[0]
        # Without a shell: the words are the configuration's, as those of upstreams' commands are.
        code, output = command_output([found, *words[1:]], folder, environ, seconds=seconds, most=_LARGEST)
    except TimeoutError:
        what = f"the command {program} did not end within {seconds:.0f} s"
        raise NoValue(what, "run it in a terminal: it may be asking for something") from None
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or "it is invalid"
        raise NoValue(f"the command {program} cannot be run: {why}", "give its absolute path") from None
    if len(output) > _LARGEST:
        what = f"the command {program} printed more than {size_words(_LARGEST)}"
        raise NoValue(what, "let the command print the secret and nothing else")
    if code != 0:
        # Not what it wrote to stderr, which may hold the secret.
        raise NoValue(f"the command {program} failed with exit code {code}", "run it in a terminal to see why")
    return _text(output, f"the output of {program}", "let the command print the secret and nothing else")


def _ask_keyring(ask: Callable[[], AnswerT], seconds: float) -> AnswerT:
    """Ask the keyring in a thread, which is left behind if it waits for somebody who is not there."""
    answers: list[AnswerT] = []
    failures: list[Exception] = []

    def run() -> None:
        try:
            answers.append(ask())
        except Exception as error:  # backends raise the errors of their own libraries, too
            failures.append(error)

    thread = threading.Thread(target=run, name="keyring", daemon=True)
    thread.start()
    thread.join(seconds)
    if answers:
        return answers[0]
    if not failures:
        what = f"the keyring did not answer within {seconds:.0f} s"
        raise NoValue(what, "unlock it, or use ${file:...} or a variable")
    if type(failures[0]).__name__ == "NoKeyringError":  # not imported for this: the package is loaded only where needed
        raise NoValue("this machine has no keyring that could be used", _WITHOUT_KEYRING) from failures[0]
    said = plain(str(failures[0]).partition("\n")[0], 200)
    what = f"the keyring cannot be used: {type(failures[0]).__name__}{said and f': {said}'}"
    raise NoValue(what, "unlock it, or use ${file:...} or a variable") from failures[0]


def _text(content: bytes, what: str, remedy: str) -> str:
    """Return the secret without the line end that editors and programs add."""
    try:
        text = content.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except ValueError:
        raise NoValue(f"{what} is not UTF-8", remedy) from None
    if not text.strip():
        raise NoValue(f"{what} is empty", remedy)
    return text
