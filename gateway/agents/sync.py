"""Blocking versions of the library's functions, under the same names, for programs without async.

    from gateway import sync

    with sync.open("mcp-gateway.toml") as gw:
        tools = gw.toolset(api="openai_chat", model="gpt-5.5")
        completion = client.chat.completions.create(messages=messages, tools=tools.schemas(), ...)
        messages += tools.respond(completion)

Each gateway runs in an event loop in a thread of its own. Do not call this from async code: that would block its loop.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from gateway.agents import OpenGateway as AsyncGateway
from gateway.agents import Responded
from gateway.agents import Toolset as AsyncToolset
from gateway.agents.approval import ApprovalRequest, OnApproval
from gateway.agents.connect_gateway import connect as connect_async
from gateway.agents.open import open as open_async
from gateway.agents.source import StoredContent
from gateway.config.schema import Settings
from gateway.content.shaping.histories import Resolved
from gateway.content.shaping.histories import resolve_messages as resolve_messages_async
from gateway.content.shaping.turns import LoweredTurn
from gateway.content.shaping.turns import lower_turn as lower_turn_async
from gateway.content.store import ContentStore

__all__ = ["Gateway", "Toolset", "connect", "lower_turn", "open", "resolve_messages"]


class Toolset:
    """`gateway.Toolset`, blocking."""

    def __init__(self, toolset: AsyncToolset, portal: BlockingPortal) -> None:
        self._toolset = toolset
        self._portal = portal

    def fresh(self) -> "Toolset":
        """The same toolset for another conversation."""
        return Toolset(self._toolset.fresh(), self._portal)

    def schemas(self) -> list[dict[str, Any]]:
        """See `gateway.Toolset.schemas`."""
        return self._portal.call(self._toolset.schemas)

    def respond(self, completion: Any) -> Responded:
        """See `gateway.Toolset.respond`."""
        return self._portal.call(self._toolset.respond, completion)

    def refuse(self, completion: Any, message: str | None = None) -> Responded:
        """See `gateway.Toolset.refuse`."""
        return self._toolset.refuse(completion, message)

    def joined(self, chunks: Iterable[Any]) -> dict[str, Any]:
        """See `gateway.Toolset.joined`."""
        return self._toolset.joined(chunks)

    def has_tool_calls(self, completion: Any) -> bool:
        """See `gateway.Toolset.has_tool_calls`."""
        return self._toolset.has_tool_calls(completion)

    def tool_call_count(self, completion: Any) -> int:
        """See `gateway.Toolset.tool_call_count`."""
        return self._toolset.tool_call_count(completion)


class Gateway:
    """`gateway.agents.OpenGateway`, blocking."""

    def __init__(self, gateway: AsyncGateway, portal: BlockingPortal) -> None:
        self._gateway = gateway
        self._portal = portal

    def toolset(self, *, api: str, **options: Any) -> Toolset:
        """Tools for one conversation with a model; options as for `gateway.agents.OpenGateway.toolset`."""
        return Toolset(self._gateway.toolset(api=api, **options), self._portal)

    def put(self, content: bytes, *, media_type: str | None = None, name: str | None = None) -> StoredContent:
        """See `gateway.agents.OpenGateway.put`."""
        return self._portal.call(partial(self._gateway.put, content, media_type=media_type, name=name))


def open(
    settings: Settings | Path | str | None = None, *, on_approval: Callable[[ApprovalRequest], bool] | None = None
) -> AbstractContextManager[Gateway]:
    """See `gateway.open`; here, `on_approval` is an ordinary function, which is called in another thread."""

    return _entered(lambda: open_async(settings, on_approval=_in_thread(on_approval)))


def connect(
    url: str, token: str | None = None, *, on_approval: Callable[[ApprovalRequest], bool] | None = None
) -> AbstractContextManager[Gateway]:
    """See `gateway.connect`; here, `on_approval` is an ordinary function, which is called in another thread."""
    return _entered(lambda: connect_async(url, token, on_approval=_in_thread(on_approval)))


def _in_thread(on_approval: Callable[[ApprovalRequest], bool] | None) -> OnApproval | None:
    if on_approval is None:
        return None

    async def ask(call: ApprovalRequest) -> bool:
        return await anyio.to_thread.run_sync(on_approval, call)

    return ask


def lower_turn(calls: Sequence[Any], target: str, **options: Any) -> LoweredTurn:
    """See `gateway.lower_turn`."""
    return anyio.run(partial(lower_turn_async, calls, target, **options))


def resolve_messages(messages: Sequence[Any], target: str, store: ContentStore, **options: Any) -> Resolved:
    """See `gateway.resolve_messages`. The store is used in an event loop that ends with this call."""
    return anyio.run(partial(resolve_messages_async, messages, target, store, **options))


@contextmanager
def _entered(make: Callable[[], AbstractAsyncContextManager[AsyncGateway]]) -> Generator[Gateway]:
    with start_blocking_portal(name="gateway") as portal, portal.wrap_async_context_manager(make()) as gateway:
        yield Gateway(gateway, portal)
