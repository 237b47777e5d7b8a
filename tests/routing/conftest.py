"""Fakes for what routing stands on: each a small real class, in process, that does what its Protocol says."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from gateway.config.access_settings import AccessSettings
from gateway.config.content_settings import LimitSettings
from gateway.config.gateway_settings import GatewaySettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.content.shaping import Reach
from gateway.core.model.envelope import Envelope
from gateway.core.model.notes import Note
from gateway.core.profiles.profile import AppRules, FeatureRules, Match, Profile, StructuredRules, ToolRules, WaitRules
from gateway.core.results.lift_result import lift
from gateway.core.tokens import Length, Lengths
from gateway.errors import Failure, UnknownMethod, UnknownResource
from gateway.routing import Router
from gateway.routing.long_calls import LongCalls
from gateway.upstream import RequestContext, UpstreamState
from gateway.upstream.bridging.bridge import Bridge

Answer = Callable[[str, Mapping[str, Any]], Any]


@dataclass(frozen=True)
class FakeLists:
    """What an upstream last said that it has."""

    tools: Sequence[Any]
    resources: Sequence[Any]
    templates: Sequence[Any]
    prompts: Sequence[Any]
    hints: Mapping[str, Mapping[str, Any]]


@dataclass
class FakeUpstream:
    """An upstream whose lists and answers a test sets. `asked` keeps every request, with its limits.

    `answer` returns a raw result or raises; when it returns an awaitable, that is awaited. `become` changes its state
    and wakes whoever waits for it.
    """

    name: str
    tool_list: Sequence[Any] = ()
    resource_list: Sequence[Any] = ()
    template_list: Sequence[Any] = ()
    prompt_list: Sequence[Any] = ()
    hints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    offers: tuple[str, ...] = ()
    extensions: Mapping[str, Any] = field(default_factory=dict)
    revision: str | None = "2025-11-25"
    instructions: str | None = None
    server_info: Mapping[str, Any] | None = None
    settings: UpstreamSettings = field(default_factory=lambda: UpstreamSettings(command="fake"))
    state: UpstreamState = UpstreamState.READY
    cause: str | None = None
    failure: Failure | None = None
    answer: Answer = lambda method, params: {"content": [{"type": "text", "text": "ok"}]}
    asked: list[tuple[str, Mapping[str, Any], Any]] = field(default_factory=list)
    asked_for: list[tuple[Any, Any]] = field(default_factory=list)
    settled: anyio.Event = field(default_factory=anyio.Event)
    awaited: int = 0
    sessions_left: list[str] = field(default_factory=list)
    principal: str = "local"
    is_personal: bool = False

    @property
    def capabilities(self) -> dict[str, Any]:
        lists = {
            "tools": self.tool_list,
            "resources": self.resource_list or self.template_list,
            "prompts": self.prompt_list,
        }
        declared = {"extensions": self.extensions} if self.extensions else {}
        return {
            **{name: {} for name, items in lists.items() if items},
            **{name: {} for name in self.offers},
            **declared,
        }

    def for_principal(self, principal: str) -> "FakeUpstream":
        return self

    def lists_for(self, caller: Any = None) -> "FakeLists":
        return FakeLists(self.tool_list, self.resource_list, self.template_list, self.prompt_list, self.hints)

    def listed_kind(self, caller: Any) -> str | None:
        return ""

    def become(self, state: UpstreamState, cause: str | None = None) -> None:
        self.state, self.cause = state, cause
        self.settled.set()

    async def prepare(self, caller: Any, seconds: float = 0.0, *, hears: bool = True) -> None:
        pass

    async def roots_changed(self, session: str) -> None:
        pass

    def left(self, session: str) -> None:
        self.sessions_left.append(session)

    async def ready(self, timeout: float) -> bool:
        self.awaited += 1
        with anyio.move_on_after(timeout):
            await self.settled.wait()
        return self.state is UpstreamState.READY

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        context: RequestContext,
        timeout: Any = None,
    ) -> Any:
        self.asked.append((method, params, timeout or self.settings.timeout))
        self.asked_for.append((context.caller, context.host))
        if context.on_progress is not None:
            await context.on_progress(1.0, 2.0, "half")
        result = self.answer(method, params)
        return await result if hasattr(result, "__await__") else result


class FakeUpstreams:
    """The upstreams by name, in the order given."""

    def __init__(self, upstreams: Sequence[FakeUpstream]) -> None:
        self._by_name = {upstream.name: upstream for upstream in upstreams}

    def __getitem__(self, name: str) -> FakeUpstream:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)


class FakeOwnTools:
    """One tool of the gateway's own, which says who called; one stored text."""

    def tools(self) -> Sequence[Any]:
        return ({"name": "gateway_view", "inputSchema": {"type": "object"}},)

    def prompts(self) -> Sequence[Any]:
        return ()

    async def resources(self, *, owner: str) -> Sequence[Any]:
        return ({"uri": f"content://of-{owner}", "name": owner},)

    async def request(
        self, method: str, params: Mapping[str, Any], *, owner: str, profile: Profile, read: Any = None
    ) -> dict[str, Any]:
        if method == "resources/read":
            if params["uri"] != f"content://of-{owner}":
                raise UnknownResource("not yours")
            return {"contents": [{"uri": params["uri"], "text": "stored"}]}
        if method != "tools/call":
            raise UnknownMethod(method)
        return {"content": [{"type": "text", "text": f"{params['name']} for {owner}, {profile.name}"}]}


@dataclass(frozen=True)
class FakeShaped:
    result: dict[str, Any]
    envelope: Envelope
    notes: tuple[Note, ...] = ()
    kept: tuple[str, ...] = ()
    lengths: Lengths = field(default_factory=dict[str, Length])


class FakeShaper:
    """Marks each result with the profile and the owner that it was shaped for."""

    def __init__(self) -> None:
        self.shaped_for: list[Profile] = []

    async def shape(
        self,
        result: Mapping[str, Any],
        profile: Profile,
        *,
        owner: str,
        notes: tuple[Note, ...] = (),
        reach: Reach | None = None,
        origin: str | None = None,
        app: bool = False,
        size: Any = None,
        accepts: Any = None,
    ) -> FakeShaped:
        self.shaped_for.append(profile)
        kept = {"app": True} if app else {}
        return FakeShaped({**result, "shaped": [profile.name, owner], **kept}, lift(result))


PROFILES = {
    "default": Profile(name="default", structured=StructuredRules(send="never"), wait=WaitRules(tools_list=0)),
    "codex": Profile(name="codex", match=(Match(client_name="codex*"),), wait=WaitRules(tools_list=60)),
    "told-by-header": Profile(name="told-by-header", match=(Match(client_name="mcp", header="X-Mine-*"),)),
    "hurried": Profile(name="hurried", wait=WaitRules(tools_list=60, list=90)),
    "viewer": Profile(name="viewer", tools=ToolRules(helpers=True), wait=WaitRules(tools_list=0)),
    "strict": Profile(
        name="strict",
        match=(Match(client_name="strict"),),
        tools=ToolRules(root="object"),
        wait=WaitRules(tools_list=0),
        features=FeatureRules(broken=("sampling", "tools_list_changed")),
        variants={"strict-chat": ("gpt-4*",)},
    ),
    "limited": Profile(
        name="limited",
        match=(Match(client_name="limited*"),),
        wait=WaitRules(tools_list=0, call=0.15, progress_resets=False),
    ),
    "listed": Profile(name="listed", apps=AppRules(calls="listed"), wait=WaitRules(tools_list=0)),
    "few": Profile(name="few", tools=ToolRules(max_tools=40), wait=WaitRules(tools_list=0)),
    "searching": Profile(name="searching", tools=ToolRules(search="never"), wait=WaitRules(tools_list=0)),
    "strict-chat": Profile(name="strict-chat", tools=ToolRules(name_chars="a-z0-9_", name_max=20)),
}


def make_router(
    *upstreams: FakeUpstream,
    prefix: Any = "always",
    profile: str | None = None,
    model: str | None = None,
    result_bytes: int = 1_000,
    shaper: FakeShaper | None = None,
    bridge: Bridge | None = None,
    access: AccessSettings | None = None,
    audit: Any = None,
    long_calls: LongCalls | None = None,
    **sections: Any,
) -> Router:
    gateway = GatewaySettings(prefix=prefix, model=model)
    limits = LimitSettings(result_bytes=result_bytes)
    settings = Settings(gateway=gateway, limits=limits, access=access or AccessSettings(), **sections)
    known: Any = FakeUpstreams(upstreams)
    parts = (known, FakeOwnTools(), shaper or FakeShaper(), PROFILES, settings, profile)
    return Router(*parts, bridge=bridge, audit=audit, long_calls=long_calls)


@pytest.fixture
def fake_upstream() -> type[FakeUpstream]:
    return FakeUpstream


@pytest.fixture
def shaper() -> FakeShaper:
    return FakeShaper()


@pytest.fixture
def profiles() -> Mapping[str, Profile]:
    return PROFILES


@pytest.fixture
def router() -> Callable[..., Router]:
    return make_router
