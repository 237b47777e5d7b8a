"""`mcp-gateway read`: read a resource as a host does, such as the page of a tool."""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.command_context import (
    AsJson,
    ConfigFile,
    ProfileNames,
    Revision,
    UpstreamUrls,
    chosen_profiles,
    profile_option,
    run_until_signal,
    settings_for,
    the_profile,
    the_profiles,
    without_waiting,
)
from gateway.cli.command_remedies import command_remedies
from gateway.cli.exit_codes import DONE, refuse
from gateway.cli.given_options import GivenOptions
from gateway.cli.known_upstream import unknown_upstream
from gateway.cli.named_callers import remembered_tools
from gateway.cli.pages import WithPages, declaring, expected, page_words
from gateway.cli.print_result import meta_words
from gateway.cli.progress import Wait
from gateway.cli.saved_file import SavedFile
from gateway.cli.terminal import remark, say, say_json
from gateway.config.schema import Settings
from gateway.core import apps
from gateway.core.fact_words import counted, join_facts, plain, size_words
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object, objects_in
from gateway.core.model.revisions import REVISIONS
from gateway.errors import ContentError
from gateway.runtime import run_gateway

_LARGE_PAGE = 1_000_000
"""Bytes: Claude Desktop refuses results of tools above 1,048,576 characters, and a page is one message too."""


def read(
    uri: Annotated[str, typer.Argument(metavar="URI", help="The URI, as shown by `tools --app` and in results.")],
    config: ConfigFile = None,
    upstream: UpstreamUrls = None,
    profile: Annotated[ProfileNames, profile_option("The host (else: gateway.profile, default).")] = None,
    revision: Revision = REVISIONS[-1],
    app: WithPages = False,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="Write it to this file, byte for byte; `-`: stdout.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: AsJson = False,
) -> int:
    """Read a resource as a host does: the page of a tool (ui://NAME/...), or any other.

    Its text goes to stdout; what it is, and the domains and permissions that a page asks for, to stderr. For a page,
    only its upstream NAME is started; for anything else, every upstream is.
    """
    if as_json and to is not None:
        refuse("give either --json or --to")
    file = SavedFile(to, force) if to is not None else None
    settings = settings_for(config, upstream)
    name = the_profile(profile) or settings.gateway.profile or "default"
    (chosen,) = chosen_profiles(settings, [name], revision)
    settings, caller = without_waiting(settings, chosen, revision)
    wait = Wait(visible=not as_json, ctrl_c="end")
    given = GivenOptions(config, upstream or (), the_profiles(profile), revision, app)
    ended = run_until_signal(lambda: _read(settings, uri, declaring(caller, app), wait, given))
    if isinstance(ended, int):
        return ended
    if as_json:
        say_json({"profile": chosen, "result": ended})
        return DONE
    contents = objects_in(ended.get("contents"))
    for item in contents:
        _tell(item)
    if file is not None:
        return _save(contents, file)
    for item in contents:
        if isinstance(text := item.get("text"), str):
            say(text)
    return DONE


async def _read(settings: Settings, uri: str, caller: Caller, wait: Wait, given: GivenOptions) -> dict[str, Any]:
    front = apps.split(uri)
    is_unknown = front is not None and front[0] not in settings.upstreams
    if front is not None and is_unknown and uri.startswith(apps.SCHEME) and not _is_page_of_its_own(settings, uri):
        raise unknown_upstream(front[0], settings.upstreams)
    async with run_gateway(settings, asleep=True, expected=expected(caller, given.app)) as gateway:
        names = [front[0]] if front is not None and front[0] in gateway.upstreams else list(gateway.upstreams)
        woken = [gateway.upstreams[name] for name in names]
        for upstream in woken:
            upstream.wake()
        await wait.settled(woken)
        with command_remedies(settings.upstreams, given), wait.line(lambda: f"reading {uri}"):
            return await gateway.router.respond("resources/read", {"uri": uri}, caller)


def _is_page_of_its_own(settings: Settings, uri: str) -> bool:
    """Whether a server calls a page by this URI, without its name in front, as far as its tools are remembered."""
    return any(uri in apps.pages(tool) for tools in remembered_tools(settings).values() for tool in tools)


def _tell(item: Mapping[str, Any]) -> None:
    """Describe on stderr what was read, and for a page, the reasons why hosts may not show it."""
    uri, meta, page = str(item.get("uri", "")), as_object(item.get("_meta")), apps.page_facts(item)
    is_page = uri.startswith(apps.SCHEME)
    words = page_words(page) if is_page else join_facts(page.media_type, size_words(page.byte_size))
    remark(f"{plain(uri)}: {words}" + (f" {meta_words(meta)}" if meta else ""))
    if not is_page:
        return
    for fault in page.faults:
        remark(f"  hosts may not show it: {plain(fault)}")
    if page.byte_size > _LARGE_PAGE:
        remark("  hosts may refuse a page of more than a megabyte")
    if not page.faults:
        remark("  it was not run: `mcp-gateway console` draws it, and shows what it needs that hosts may refuse")


def _save(contents: Sequence[Mapping[str, Any]], target: SavedFile) -> int:
    """Write the one item that was read to a file."""
    if len(contents) != 1:
        raise ContentError(f"there are {counted(len(contents), 'item')}, and --to writes one: --json shows them")
    with target as file:
        file.write(_bytes_of(contents[0]))
    if not target.is_stdout:
        remark(f"written to {target.path}")
    return DONE


def _bytes_of(item: Mapping[str, Any]) -> bytes:
    text, blob = item.get("text"), item.get("blob")
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    try:
        return b64decode(blob, validate=True) if isinstance(blob, str) else b""
    except NotBase64:
        raise ContentError("its data is not base64") from None
