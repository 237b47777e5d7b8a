"""One script: the functions that it has, what it prints and shows, and the result that its host gets."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio import to_thread

from gateway.config.code_mode_settings import CodeModeSettings
from gateway.core.wording import RUN_TOOL, counted, plain, size_words
from gateway.errors import GatewayError
from gateway.routing.code_mode.media import Media, MediaShelf
from gateway.routing.code_mode.sandbox import Functions, Sandbox, ScriptFailed
from gateway.routing.code_mode.script_tools import ScriptTool
from gateway.routing.code_mode.values import ScriptFault, media_in, to_json, to_text, value_of

CallTool = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Calls a tool by the name that the host knows, with its arguments; returns its result. Raises GatewayError."""

FindTools = Callable[[str], Awaitable[str]]
"""Returns the signatures of the best functions for a query."""

_MOST_BLOCKS = 500
_LONGEST_ERROR = 2_000
_UNFINISHED = frozenset({"input_required", "task"})

Value = TypeVar("Value")


class ScriptRun:
    """Runs one script. `origins` has the upstream of each tool by the name that hosts call it by."""

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
    ) -> None:
        self._sandbox = sandbox
        self._settings = settings
        self._tools = tools
        self._origins = origins
        self._shelf = shelf
        self._call_tool = call_tool
        self._find_tools = find_tools
        self._own_tools = own_tools
        self._blocks: list[dict[str, Any]] = []
        self._printed: list[str] = []
        self._left = settings.max_shown
        self._calls = 0
        self._at_once = anyio.CapacityLimiter(settings.calls_at_once)

    async def result(self, code: str) -> dict[str, Any]:
        """Run the script and return the raw result: what it printed and showed, in order, and why it failed."""
        failed: ScriptFailed | None = None
        try:
            value = await self._sandbox.run(code, self._functions(), self._printed.append)
            self._flush()
            if value is not None:
                self._add_text(await to_thread.run_sync(to_text, value))
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
            "media": self._media,
            "open_media": self._open,
            "read_bytes": self._read_bytes,
            "read_text": self._read_text,
            "find_tools": self._find,
            **{name: partial(self._refused, name) for name in self._own_tools},
        }
        return Functions(tools, helpers)

    async def _called(self, tool: ScriptTool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        arguments = await to_thread.run_sync(to_json, _bound(tool, args, kwargs))
        if self._calls >= self._settings.max_calls:
            raise ScriptFault(f"a script may make at most {counted(self._settings.max_calls, 'tool call')}")
        self._calls += 1
        async with self._at_once:
            result = await _faults(tool.function, self._call_tool(tool.name, arguments))
        if result.get("resultType") in _UNFINISHED:
            raise ScriptFault(f"{tool.function} wants an answer from the user: call {tool.name} outside of a script")
        try:
            return await _faults(tool.function, value_of(result, self._shelf, self._origins.get(tool.name)))
        except ScriptFault as fault:
            raise ScriptFault(f"{tool.function}: {fault}") from fault

    async def _refused(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        what = "a script cannot start another" if name == RUN_TOOL else "it is for the model, not for scripts"
        raise ScriptFault(f"{name} cannot be called here: {what}")

    async def _show(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        _no_names("show", kwargs)
        self._flush()
        for value in args:
            found = await to_thread.run_sync(media_in, value)
            if not found:
                self._add_text(await to_thread.run_sync(to_text, value))
            for media in found:
                await self._add_media(media)

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

    async def _media(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Media]:
        return await to_thread.run_sync(media_in, _only("media", args, kwargs))

    async def _open(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Media:
        handle = _only("open_media", args, kwargs)
        if not isinstance(handle, str):
            raise ScriptFault("open_media needs a handle, as a text")
        return await _faults("open_media", self._shelf.open(handle))

    async def _read_bytes(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
        media = _only("read_bytes", args, kwargs)
        if not isinstance(media, Media):
            raise ScriptFault("only the bytes of media can be read: media(result) returns those of a result")
        if media.size > (most := self._settings.max_read):
            raise ScriptFault(f"this {media.type} has {size_words(media.size)}; a script may read {size_words(most)}")
        return await _faults("read_bytes", self._shelf.read(media, most))

    async def _read_text(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        return (await self._read_bytes(args, kwargs)).decode("utf-8", "replace")

    async def _find(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        query = _only("find_tools", args, {} if args else {"": kwargs.get("query")})
        if not isinstance(query, str) or not query.strip():
            raise ScriptFault("find_tools needs a few words that say what the tool should do")
        return await self._find_tools(query)


def _bound(tool: ScriptTool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name. Raises TypeError, in Python's own words, if they do not fit."""
    if len(args) > len(tool.parameters):
        many = counted(len(tool.parameters), "argument")
        raise TypeError(f"{tool.function}() takes {many} but {len(args)} were given")
    bound = dict(zip(tool.parameters, args, strict=False))
    if twice := bound.keys() & kwargs.keys():
        raise TypeError(f"{tool.function}() got several values for {plain(min(twice), 100)!r}")
    return {**bound, **kwargs}


def _only(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    given = [*args, *kwargs.values()]
    if len(given) != 1:
        raise TypeError(f"{name}() takes 1 argument but {len(given)} were given")
    return given[0]


def _no_names(name: str, kwargs: Mapping[str, Any]) -> None:
    if kwargs:
        raise TypeError(f"{name}() takes no arguments by name")


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
