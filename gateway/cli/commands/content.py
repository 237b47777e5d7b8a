"""`mcp-gateway put` and `mcp-gateway content`: manage stored content from the command line.

A running gateway is asked over its control socket. If none runs, a persistent store is opened directly.
"""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from gateway.cli.command_context import AsJson, ConfigFile, settings_if_any
from gateway.cli.exit_codes import DONE, refuse
from gateway.cli.running_gateways import Name, Pid, the_one
from gateway.cli.saved_file import SavedFile
from gateway.cli.terminal import help_without_command, remark, say, say_json, say_table
from gateway.core.fact_words import plain, size_words
from gateway.errors import ConfigError
from gateway.serving.control import transfer_content
from gateway.serving.control.client import ask
from gateway.serving.control.records import GatewayRecord, running

if TYPE_CHECKING:
    from gateway.cli.direct_store import DirectStore

app = typer.Typer(name="content", help="List, save or remove stored content.", invoke_without_command=True)

Handle = Annotated[str, typer.Argument(metavar="HANDLE", help="A handle, as printed by `content ls` and `put`.")]
Owner = Annotated[
    str | None,
    typer.Option(
        "--owner",
        metavar="NAME",
        help="Owner of the content: the principal of a token or a person (by default its name), local (stdio, loopback "
        "without a token) or token ([http] token).",
    ),
]

_LONGEST = 2_000

_SHOWN_FROM = 8 * 1024 * 1024
"""Size from which progress is shown on a terminal, in bytes."""


def put(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file; - reads stdin.")],
    name: Annotated[str | None, typer.Option("--as", metavar="NAME", help="Its name. Default: the file's.")] = None,
    media_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Media type, if it cannot be detected from the bytes.")
    ] = None,
    owner: Owner = None,
    pid: Pid = None,
    gateway: Name = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> int:
    """Store a file, and print its handle and its link."""
    with ExitStack() as stack:
        source, size = _source(file, stack)
        given = name or (None if str(file) == "-" else file.name)
        described = {"size": size, "name": given, "media_type": media_type, "owner": owner}
        record = _running(pid, gateway, config)
        if record is not None:
            told = transfer_content.upload_content(record, source, described, _progress("put"))
        else:
            told = _store(config).put(source, described)
    for note in told.get("notes", ()):
        remark(f"note: {plain(note, _LONGEST)}")
    if as_json:
        say_json(told)
    else:
        say(f"{told['handle']}  {told['media_type']}, {size_words(told['size'])}")
        if told["url"]:
            say(told["url"])
    return DONE


@app.callback()
def common(context: typer.Context) -> None:
    """Stored content: list it, save it, remove it."""
    help_without_command(context)


@app.command("ls")
@app.command("list", hidden=True)
def ls(
    owner: Owner = None, pid: Pid = None, gateway: Name = None, config: ConfigFile = None, as_json: AsJson = False
) -> int:
    """List stored content of one owner, and say who else has some."""
    listed = _asked({"do": "list", "owner": owner}, pid, gateway, config)
    if as_json:
        say_json(listed)
        return DONE
    rows = [
        (one["handle"], one["kind"], one["media_type"], size_words(one["size"]), _until(one), one["name"] or "")
        for one in listed["content"]
    ]
    say_table(("handle", "kind", "type", "size", "until", "name"), rows)
    _tell_of_owners(listed)
    if listed["pieces"] > len(rows):
        remark(f"({listed['pieces'] - len(rows):,} older ones are not shown)")
    return DONE


@app.command("get")
def get(
    handle: Handle,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FILE",
            help="File to write; - for stdout. Default: its own name, or stdout if piped.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    owner: Owner = None,
    pid: Pid = None,
    gateway: Name = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> int:
    """Save stored content as a file. Without --owner, it may be anybody's whom the configuration names."""
    if as_json and str(to) == "-":
        refuse("--json and --to - both write to stdout")
    if to is None and not as_json and _is_pipe():
        to = Path("-")
    target = to or Path(_asked({"do": "describe", "handle": handle, "owner": owner}, pid, gateway, config)["file"])
    record = _running(pid, gateway, config)
    with SavedFile(target, force) as saving:
        if record is not None:
            told = transfer_content.download_content(record, handle, owner, saving.write, _progress("get"))
        else:
            told = _store(config).get(handle, owner, saving.write)
    if owner is None and told.get("owner") != told.get("default_owner"):
        remark(f"it belongs to {plain(told['owner'], 100)}")
    if as_json:
        say_json({**told, "file": str(target)})
    elif str(target) != "-":
        say(f"{target}  {told['media_type']}, {size_words(told['size'])}")
    return DONE


@app.command("rm")
def rm(
    handles: Annotated[list[str], typer.Argument(metavar="HANDLE...", help="Handles of the content to remove.")],
    owner: Owner = None,
    pid: Pid = None,
    gateway: Name = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> int:
    """Remove stored content. Another owner's is removed only with --owner."""
    for handle in handles:
        _asked({"do": "delete", "handle": handle, "owner": owner}, pid, gateway, config)
    if as_json:
        say_json({"removed": handles})
    else:
        for handle in handles:
            say(f"removed {plain(handle, 80)}")
    return DONE


def _is_pipe() -> bool:
    """Whether another program reads stdout: `content get HANDLE | program`."""
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):  # it has been replaced, or closed
        return False


def _source(file: Path, stack: ExitStack) -> tuple[BinaryIO, int]:
    """Open the file, and return it with its size. A pipe is first copied to a temporary file to find its size."""
    if file.is_dir():  # an empty name is the current folder, too
        refuse(f"cannot read {file}: it is a folder; name a file, or - for stdin")
    try:
        opened = sys.stdin.buffer if str(file) == "-" else stack.enter_context(file.open("rb"))
        told = os.fstat(opened.fileno())
        if str(file) != "-" and stat.S_ISREG(told.st_mode):
            return opened, told.st_size
        spool: BinaryIO = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        shutil.copyfileobj(opened, spool)
    except OSError as error:
        refuse(f"cannot read {file}: {error.strerror or error}")
    size = spool.tell()
    spool.seek(0)
    return spool, size


def _running(pid: int | None, name: str | None, config: Path | None) -> GatewayRecord | None:
    """Return the gateway to ask: the one named, or else the only one; None if none runs (with that file)."""
    if pid is not None or name is not None:
        return the_one(pid, name)
    asked = str(config.absolute()) if config is not None else None
    found = [record for record in running() if asked in (None, record.config)]
    return found[0] if len(found) == 1 else the_one(None, None) if found else None


def _asked(request: dict[str, Any], pid: int | None, name: str | None, config: Path | None) -> dict[str, Any]:
    """Return the one-line answer to a request, from the running gateway or directly from the store."""
    record = _running(pid, name, config)
    if record is not None:
        return ask(record, "content", transfer_content.SILENCE_SECONDS, **request)
    return _store(config).line(request)


def _store(config: Path | None) -> "DirectStore":
    """Return the store of the configuration, used without a gateway. It must be one that lasts."""
    settings = settings_if_any(config).settings
    if settings.store.url.startswith("memory:"):
        raise ConfigError(
            "no gateway is running, and its store would be in memory",
            remedy='start one, or name a store that lasts: [store] url = "file:///..."',
        )
    from gateway.cli.direct_store import DirectStore  # here, because it takes as long to import as a gateway

    return DirectStore(settings)


def _tell_of_owners(listed: Mapping[str, Any]) -> None:
    """Say on stderr whose list it is, and who else has content. An older gateway does not say so."""
    if "owner" not in listed:
        return
    others = ", ".join(plain(other, 100) for other in listed["others"])
    has = f"; others have some, too (--owner): {others}" if others else ""
    remark(f"content of {plain(listed['owner'], 100)}{has}")


# -- for people --------------------------------------------------------------------------------------------------------


def _progress(doing: str) -> Callable[[int, int], None]:
    """Return a callback that shows progress on one line of a terminal."""
    said = [-1]

    def tell(done: int, size: int) -> None:
        percent = done * 100 // max(1, size)
        if size < _SHOWN_FROM or percent == said[0] or not sys.stderr.isatty():
            return
        said[0] = percent
        end = "\n" if done >= size else ""
        print(f"\r{doing}: {percent} % of {size_words(size)}", end=end, file=sys.stderr, flush=True)

    return tell


def _until(one: dict[str, Any]) -> str:
    return datetime.fromtimestamp(one["expires_at"], UTC).astimezone().strftime("%Y-%m-%d %H:%M")
