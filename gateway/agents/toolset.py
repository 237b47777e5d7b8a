"""The toolset: schemas for the model, and the messages that answer its completions."""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import anyio

from gateway.agents.responded import Responded, ToolResult
from gateway.agents.source import Source, StoredContent
from gateway.agents.tool_selection import Chosen, choose_tools
from gateway.content.shaping.provider_file_links import Files
from gateway.content.shaping.turns import lower_turn, lower_turn_now, model_profile_for
from gateway.content.store import ContentStore
from gateway.core.fact_words import plain
from gateway.core.model.envelope import Envelope
from gateway.core.model_apis.completions import ToolCall
from gateway.core.model_apis.registry import APIS, STRICT_APIS
from gateway.core.model_apis.tool_schemas.strict_schemas import strict_tool
from gateway.core.profiles.model_profile import Writing
from gateway.core.results.lift_result import lift
from gateway.core.wording import CALLS_REFUSED, failure_text, malformed_arguments
from gateway.errors import ConfigError, GatewayError, InvalidRequest, TurnsSpent, UpstreamTimeout

logger = logging.getLogger(__name__)

MAX_TOOL_CALL_TURNS = 10

_WriteSchemas: TypeAlias = Callable[[Sequence[Mapping[str, Any]]], list[dict[str, Any]]]


class Toolset:
    """The tools of a gateway for ONE conversation with a model. `fresh()` returns a toolset for another conversation.

        messages = [{"role": "user", "content": "..."}]
        while True:
            completion = await client.chat.completions.create(messages=messages, tools=await tools.schemas(), ...)
            messages += await tools.respond(completion)
            if not tools.has_tool_calls(completion):
                break

    Completions are the official SDK's objects or their JSON. `OpenGateway.toolset` describes the options.
    """

    def __init__(
        self,
        source: Source,
        *,
        api: str,
        model: str | None = None,
        base_url: str | None = None,
        alias: str | None = None,
        providers: Collection[str] | None = None,
        allow_tools: Collection[str] | None = None,
        max_tool_call_turns: int = MAX_TOOL_CALL_TURNS,
        timeout: float | None = None,
        files: Files | None = None,
        strict: bool = False,
    ) -> None:
        self.alias = alias
        self._files = files
        self._who = f"toolset {alias!r}: " if alias else ""
        self._target = (api, model, base_url)
        writing = model_profile_for(api, model, base_url).writing
        self._api = APIS[writing]
        self._write_schemas = self._schemas_writer(api, writing, strict)
        self._source = source
        self._providers = _names(self._who, "providers", providers)
        self._allow = _names(self._who, "allow_tools", allow_tools)
        if max_tool_call_turns < 0:
            raise ConfigError(f"{self._who}max_tool_call_turns cannot be {max_tool_call_turns}")
        if timeout is not None and timeout <= 0:
            raise ConfigError(f"{self._who}timeout has to be more than 0 seconds")
        self.max_tool_call_turns = max_tool_call_turns
        self.timeout = timeout
        self.strict = strict
        self.turns = 0
        """Number of turns with tool calls so far. Parallel calls are one turn."""
        self._refused = False
        self._chosen: Chosen | None = None

    def fresh(self) -> "Toolset":
        """Return the same toolset for another conversation, with no turns used."""
        api, model, base_url = self._target
        return Toolset(
            self._source,
            api=api,
            model=model,
            base_url=base_url,
            alias=self.alias,
            providers=self._providers,
            allow_tools=self._allow,
            max_tool_call_turns=self.max_tool_call_turns,
            timeout=self.timeout,
            files=self._files,
            strict=self.strict,
        )

    @property
    def providers(self) -> tuple[str, ...] | None:
        """The upstreams whose tools are in the toolset; None: all."""
        return self._providers

    @property
    def allow_tools(self) -> tuple[str, ...] | None:
        """The names of the allowed tools, as given; None: all tools of the providers."""
        return self._allow

    async def schemas(self) -> list[dict[str, Any]]:
        """Return the tools for the API's `tools` parameter, from a new request to the gateway.

        Wait for providers that are still starting, each within its own limit.

        Raises:
            ConfigError: a provider does not exist.
            ToolNotOffered: none of the providers offers an allowed tool.
            ToolOfferedTwice: an allowed name matches several tools.
            GatewayUnreachable: the gateway cannot be reached.
        """
        chosen = await self._choose()
        return self._write_schemas(chosen.described())

    def _schemas_writer(self, api: str, writing: Writing, strict: bool) -> _WriteSchemas:
        if not strict:
            return self._api.schemas
        if writing not in STRICT_APIS:
            raise ConfigError(f"{self._who}{api} has no strict mode", remedy="leave out strict")
        return STRICT_APIS[writing].strict_schemas

    def joined(self, chunks: Iterable[Any]) -> dict[str, Any]:
        """Join the chunks or events of a streamed answer into a completion, for `respond` and the other methods.

        `chunks` are all chunks, in order, as objects of the official SDK or as JSON.

        Raises:
            InvalidRequest: there are no chunks, or an item is not a chunk.
        """
        return self._api.joined(chunks)

    def tool_call_count(self, completion: Any) -> int:
        """Return the number of tool calls. Raises InvalidRequest if `completion` is not a completion."""
        return len(self._api.tool_calls(completion))

    def has_tool_calls(self, completion: Any) -> bool:
        """Whether the model calls any tool. Raises InvalidRequest if `completion` is not a completion."""
        return self.tool_call_count(completion) > 0

    async def respond(self, completion: Any) -> Responded:
        """Make the calls of a completion, all at once, and return the messages to append to the history.

        The assistant's message, with its reasoning, comes first, and is the only one if there are no tool calls. A call
        that fails (an unknown or not allowed tool, malformed arguments, a time-out, an unavailable upstream) becomes an
        error text for the model, and `results[n].error` is the reason; other calls are not affected. After
        `max_tool_call_turns` turns, nothing is called and the answer is that of `refuse`.

        Raises:
            InvalidRequest: `completion` is not a completion.
            TurnsSpent: the model calls tools again after a refusal. ConfigError, ToolsetError: as for `schemas`.
        """
        calls = self._api.tool_calls(completion)
        if not calls:
            return Responded(self._api.assistant_messages(completion))
        if self.turns >= self.max_tool_call_turns:
            return self._refuse_once(completion)
        chosen = self._chosen or await self._choose()
        self.turns += 1
        results: dict[int, ToolResult] = {}

        async def make(place: int, call: ToolCall) -> None:
            results[place] = await self._made(call, chosen)

        async with anyio.create_task_group() as tasks:
            for place, call in enumerate(calls):
                tasks.start_soon(make, place, call)
        in_order = [results[place] for place in range(len(calls))]
        api, model, base_url = self._target
        answered = [_answered(one) for one in in_order]
        turn = await lower_turn(answered, api, model=model, base_url=base_url, files=self._files)
        return Responded(self._api.assistant_messages(completion), turn.messages, in_order, turn.notes)

    def refuse(self, completion: Any, message: str | None = None) -> Responded:
        """Return the same messages, but with a refusal for every call, calling nothing and counting no turn.

        Raises:
            InvalidRequest: `completion` is not a completion.
        """
        envelope = _text(message or CALLS_REFUSED)
        results = [ToolResult(call, envelope) for call in self._api.tool_calls(completion)]
        assistant = self._api.assistant_messages(completion)
        if not results:
            return Responded(assistant)
        api, model, base_url = self._target
        turn = lower_turn_now([_answered(one) for one in results], api, model=model, base_url=base_url)
        return Responded(assistant, turn.messages, results, turn.notes, refused=True)

    def _refuse_once(self, completion: Any) -> Responded:
        if self._refused:
            raise TurnsSpent(
                f"{self._who}the model goes on calling tools after {self.turns} turns and a refusal",
                remedy="ask it once more without tools, or raise max_tool_call_turns",
            )
        self._refused = True
        return self.refuse(completion)

    async def _choose(self) -> Chosen:
        offer = await self._source.offer(self._providers)
        self._chosen = choose_tools(offer, self._providers, self._allow, self._api.NAMES, self._who)
        return self._chosen

    async def _made(self, call: ToolCall, chosen: Chosen) -> ToolResult:
        """Make one call. Any failure of it becomes its result."""
        if call.malformed is not None:
            told = malformed_arguments(call.malformed)
            return ToolResult(call, _text(told, is_error=True), InvalidRequest("the arguments are not a JSON object"))
        try:
            return ToolResult(call, lift(await self._called(call, chosen)))
        except GatewayError as error:
            return ToolResult(call, _text(failure_text(error.message, error.remedy), is_error=True), error)

    async def _called(self, call: ToolCall, chosen: Chosen) -> Mapping[str, Any]:
        tool = chosen.find(call.name)
        arguments = strict_tool(tool.tool).arguments(call.arguments) if self.strict else call.arguments
        with anyio.move_on_after(self.timeout):
            try:
                return await self._source.call(tool.name, arguments)
            except GatewayError:
                raise
            except Exception as error:
                # If one call fails unexpectedly, the others of the turn are still answered.
                logger.exception("a call of %s failed", plain(tool.name))
                raise GatewayError(f"the call failed: {type(error).__name__}") from error
        raise UpstreamTimeout(tool.provider, f"{tool.own_name} took longer than {self.timeout:g} s")


class OpenGateway:
    """A gateway whose tools a program may use, in process (`gateway.open`) or over HTTP (`gateway.connect`)."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._close: Callable[[], Awaitable[None]] | None = None

    def on_close(self, close: Callable[[], Awaitable[None]]) -> None:
        """Set the function that `aclose` calls. Used by the context that holds the gateway open."""
        self._close = close

    async def aclose(self) -> None:
        """Close a gateway that was awaited (`gw = await gateway.open(...)`). Does nothing if a block holds it open."""
        close, self._close = self._close, None
        if close is not None:
            await close()

    @property
    def store(self) -> ContentStore:
        """The store in which the gateway keeps content, all of it with the owner `local`.

        Raises:
            ConfigError: the gateway is in another process (`gateway.connect`); `put` works there too.
        """
        return self._source.store

    async def put(self, content: bytes, *, media_type: str | None = None, name: str | None = None) -> StoredContent:
        """Keep content under a handle, which tools of this gateway accept wherever they take bytes.

        `media_type` is detected from the content, else from `name`, a file name, if it is missing or generic. Content
        that is kept already keeps the type and name that it has, which the result says.

        Raises:
            ContentError: it is too large, or the store is not available.
            GatewayError: the gateway cannot be reached.
        """
        return await self._source.put(content, media_type, name)

    def toolset(
        self,
        *,
        api: str,
        model: str | None = None,
        base_url: str | None = None,
        alias: str | None = None,
        providers: Collection[str] | None = None,
        allow_tools: Collection[str] | None = None,
        max_tool_call_turns: int = MAX_TOOL_CALL_TURNS,
        timeout: float | None = None,
        files: Files | None = None,
        strict: bool = False,
    ) -> Toolset:
        """Return the tools for one conversation with a model.

        Args:
            api: the model's API, any target of `lower_turn`: `openai_chat`, `openai_responses`, `anthropic_messages`,
                `gemini`, `bedrock_boto3`, `mistral`, `cohere`, `ollama`, ...
            model: the model's name, if the API's abilities depend on it.
            base_url: the API's address, if its abilities depend on it.
            alias: the toolset's name in messages.
            providers: the names of the upstreams whose tools to include; None: all.
            allow_tools: the names of the tools to include, as offered or as the upstreams call them; None: all.
            max_tool_call_turns: maximum number of completions with tool calls to answer; further ones are refused.
            timeout: seconds for each call; None: the upstream's own limits.
            files: provider files, as for `lower_turn`; they stay open as long as the toolset.
            strict: use strict mode, for OpenAI's Chat Completions and Responses; the SDK's `parse` and `stream` require
            it.

        Raises:
            ProfileError: there is no such API.
            ConfigError: an option is invalid.
        """
        return Toolset(
            self._source,
            api=api,
            model=model,
            base_url=base_url,
            alias=alias,
            providers=providers,
            allow_tools=allow_tools,
            max_tool_call_turns=max_tool_call_turns,
            timeout=timeout,
            files=files,
            strict=strict,
        )


def _names(who: str, option: str, given: Collection[str] | None) -> tuple[str, ...] | None:
    if isinstance(given, str):
        raise ConfigError(f"{who}{option} is a list of names, as [{given!r}]")
    return None if given is None else tuple(given)


def _answered(result: ToolResult) -> dict[str, Any]:
    call = result.call
    return {"id": call.id, "name": call.name, "arguments": dict(call.arguments), "result": result.envelope}


def _text(text: str, *, is_error: bool = False) -> Envelope:
    return lift({"content": [{"type": "text", "text": text}], "isError": is_error})
