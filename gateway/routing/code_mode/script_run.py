"""One script: the functions that it has, what it prints and shows, and the result that its host gets."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import anyio

from gateway.config.code_mode_settings import CodeModeSettings
from gateway.core.fact_words import counted, plain, size_words
from gateway.core.model.json_values import as_list, as_object, is_list
from gateway.core.own_names import RUN_TOOL
from gateway.errors import GatewayError
from gateway.routing.code_mode.media import MediaShelf
from gateway.routing.code_mode.script_tools import ScriptTool
from gateway.routing.code_mode.values import value_of
from gateway.sandbox.faults import ScriptFailed, ScriptFault
from gateway.sandbox.media import Media
from gateway.sandbox.messages import too_many_calls
from gateway.sandbox.sandbox import Functions, Sandbox

CallTool = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Calls a tool by the name that the host knows, with its arguments; returns its result. Raises GatewayError."""

FindTools = Callable[[str], Awaitable[str]]
"""Returns the signatures of the best functions for a query."""

_MOST_BLOCKS = 500
_LONGEST_ERROR = 2_000
_UNFINISHED = frozenset({"input_required", "task"})

Value = TypeVar("Value")


class ScriptRun:
    """Runs one script. `origins` has the upstream of each tool by the name that hosts call it by.

    `outside` are the tools that only the model may call: the names of functions that there are not, and of the tools.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        settings: CodeModeSettings,
        tools: Mapping[str, ScriptTool],
        origins: Mapping[str, str],
        shelf: MediaShelf,
        call_tool: CallTool,
        find_tools: FindTools,
        own_tools: frozenset[str] = frozenset(),
        outside: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._sandbox = sandbox
        self._settings = settings
        self._tools = tools
        self._origins = origins
        self._shelf = shelf
        self._call_tool = call_tool
        self._find_tools = find_tools
        self._own_tools = own_tools
        self._outside = outside
        self._blocks: list[dict[str, Any]] = []
        self._printed: list[str] = []
        self._left = settings.max_shown
        self._calls = 0
        self._media: dict[str, Media] = {}
        """The media that the script was given, by handle."""
        self._at_once = anyio.CapacityLimiter(settings.calls_at_once)

    async def result(self, code: str) -> dict[str, Any]:
        """Run the script and return the raw result: what it printed and showed, in order, and why it failed."""
        failed: ScriptFailed | None = None
        try:
            value = await self._sandbox.run(code, self._functions(), self._printed.append, self._shelf.owner)
            self._flush()
            if value is not None:
                self._add_text(value)
        except ScriptFailed as error:
            failed = error
        except ScriptFault as error:
            failed = ScriptFailed(str(error))
        self._flush()
        if failed is not None:
            self._blocks.append(_text(_failure(failed)))
        elif not self._blocks:
            self._blocks.append(_text("[the script ended without showing anything: use print or show]"))
        return {"content": self._blocks, "isError": failed is not None}

    def _functions(self) -> Functions:
        tools = {function: partial(self._called, tool) for function, tool in self._tools.items()}
        helpers = {
            "show": self._show,
            "open_media": self._open,
            "read_bytes": self._read_bytes,
            "read_text": self._read_text,
            "find_tools": self._find,
        }
        refused = {function: _only_outside(name) for function, name in self._outside.items()}
        return Functions(tools, helpers, {**refused, **{name: _why_refused(name) for name in self._own_tools}})

    async def _called(self, tool: ScriptTool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        arguments = _bound(tool, args, kwargs)
        self._count_call()
        async with self._at_once:
            result = await _faults(tool.function, self._call_tool(tool.name, arguments))
        if result.get("resultType") in _UNFINISHED:
            raise ScriptFault(f"{tool.function} wants an answer from the user: call {tool.name} outside of a script")
        try:
            value = await _faults(tool.function, value_of(result, self._shelf, self._origins.get(tool.name)))
        except ScriptFault as fault:
            raise ScriptFault(f"{tool.function}: {fault}") from fault
        self._media.update(
            (each.handle, each) for each in (value if is_list(value) else [value]) if isinstance(each, Media)
        )
        return value

    def _count_call(self) -> None:
        if self._calls >= self._settings.max_calls:
            raise ScriptFault(too_many_calls(self._settings.max_calls))
        self._calls += 1

    async def _show(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._flush()
        for shown in map(as_object, args):
            if "text" in shown:
                self._add_text(str(shown["text"]))
            for handle in as_list(shown.get("media")):
                await self._add_media(self._known(handle))

    async def _add_media(self, media: Media) -> None:
        if media.size > self._left:
            most = size_words(self._settings.max_shown)
            raise ScriptFault(f"a script may show at most {most}, and this {media.type} has {size_words(media.size)}")
        self._check_blocks()
        self._left -= media.size
        self._blocks.append(await _faults("show", self._shelf.block(media, media.size)))

    def _add_text(self, text: str) -> None:
        size = len(text.encode("utf-8", "replace"))
        if size > self._left:
            most = size_words(self._settings.max_shown)
            text = f"{text[: self._left]}\n[cut: a script may show at most {most}]"
        self._check_blocks()
        self._left = max(0, self._left - size)
        self._blocks.append(_text(text))

    def _check_blocks(self) -> None:
        if len(self._blocks) >= _MOST_BLOCKS:
            raise ScriptFault(f"a script may show at most {_MOST_BLOCKS} parts")

    def _flush(self) -> None:
        """Add what was printed since the last block."""
        text = "".join(self._printed)
        self._printed.clear()
        if text.strip():
            self._blocks.append(_text(text.removesuffix("\n")))

    async def _open(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Media:
        media = await _faults("open_media", self._shelf.open(str(args[0])))
        self._media[media.handle] = media
        return media

    async def _read_bytes(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
        media = self._known(args[0])
        if media.size > (most := self._settings.max_read):
            raise ScriptFault(f"this {media.type} has {size_words(media.size)}; a script may read {size_words(most)}")
        return await _faults("read_bytes", self._shelf.read(media, most))

    async def _read_text(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        return (await self._read_bytes(args, kwargs)).decode("utf-8", "replace")

    async def _find(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        self._count_call()
        return await self._find_tools(str(args[0]))

    def _known(self, handle: object) -> Media:
        """Return media that the script was given."""
        if (media := self._media.get(str(handle))) is None:
            raise ScriptFault("these are not media of this script")
        return media


def _bound(tool: ScriptTool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name. Raises TypeError, in Python's own words, if they do not fit."""
    if len(args) > len(tool.parameters):
        many = counted(len(tool.parameters), "argument")
        raise TypeError(f"{tool.function}() takes {many} but {len(args)} were given")
    bound = dict(zip(tool.parameters, args, strict=False))
    if twice := bound.keys() & kwargs.keys():
        raise TypeError(f"{tool.function}() got several values for {plain(min(twice), 100)!r}")
    return {**bound, **kwargs}


def _why_refused(name: str) -> str:
    what = "a script cannot start another" if name == RUN_TOOL else "it is for the model, not for scripts"
    return f"{name} cannot be called here: {what}"


def _only_outside(name: str) -> str:
    return f"scripts may not call {plain(name, 200)}: call the tool by itself, outside of a script"


async def _faults(what: str, work: Awaitable[Value]) -> Value:
    """Return the result, or raise what the gateway says is wrong as a fault of the script."""
    try:
        return await work
    except GatewayError as error:
        raise ScriptFault(plain(f"{what}: {error}", _LONGEST_ERROR)) from error


def _failure(failed: ScriptFailed) -> str:
    where = "" if failed.line is None else f" at line {failed.line}"
    code = f"\n{failed.code}" if failed.code else ""
    return f"[the script failed{where}: {failed.words}]{code}"


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}
