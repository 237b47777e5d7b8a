"""What a host is told through the gateway is what it is told directly, down to fields that nobody knows.

Both sides of each comparison are raw JSON-RPC: the same requests to two equal upstreams, one behind a gateway with the
profile `passthrough` and no prefix. Every difference is printed; those in ALLOWED, with their reasons, are the gateway
itself showing, and all others fail.
"""

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import pytest

KINDS = ("handshake-stdio", "handshake-http", "handshake-sse", "modern-stdio", "modern-http")
META = "io.modelcontextprotocol/"
ABSENT = "(absent)"


class Allowed(NamedTuple):
    """A difference that is meant: of which requests (glob), at which place (glob), and why; in which era, if in one."""

    request: str
    place: str
    why: str
    era: str | None = None


ALLOWED = (
    Allowed("open", "*erverInfo*", "the gateway is the server that the host is connected to"),
    Allowed("*", f"*{META}serverInfo*", "since 2026-07-28 every result says which server has answered"),
    Allowed("open", "instructions", "those of all upstreams together, each under its upstream's name"),
    Allowed("open", "supportedVersions*", "the gateway speaks every revision, whatever the upstream does"),
    Allowed("open", "capabilities.*", "always the same, since the first answer comes before any upstream is known"),
    Allowed("open", "ttlMs", "what is offered may change with the configuration"),
    Allowed("touch", "title", "an update is told by its uri: the SDK's subscriptions of 2026-07-28 carry nothing else"),
    Allowed("*", "cacheScope", "lists and contents depend on who asks, so nobody may share them: private"),
    *(
        Allowed(request, place, "the gateway finds by names and uris, and says itself what none of its upstreams has")
        for request in ("read-nothing", "prompt-unknown", "unknown-tool", "unknown-method")
        for place in ("message", "data*")
    ),
    Allowed("client", "structuredContent.session", "another process, another session"),
    Allowed("structured-*", "structuredContent", "an object in these revisions: clients fail the call", "handshake"),
    Allowed("tools", "*.outputSchema", "of an object in these revisions: clients refuse the list", "handshake"),
)


def call(tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": tool, "arguments": arguments}


REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        f"block-{kind}": call("content", kind=kind)
        for kind in (
            *("text", "image", "audio", "embedded_text", "embedded_blob", "link", "unknown_type", "unknown_fields"),
        )
    },
    "blocks": call("content"),
    **{f"structured-{kind}": call("structured", kind=kind) for kind in ("object", "array", "scalar", "null")},
    "is-error": call("failing"),
    "echo": call("echo", deep={"none": None, "big": 12345678901234567890}),
    "client": call("echo_client"),
    "panel": call("panel"),
    "read": ("resources/read", {"uri": "bridge://one"}),
    "read-blob": ("resources/read", {"uri": "bridge://bytes"}),
    "read-many": ("resources/read", {"uri": "bridge://two"}),
    "read-app": ("resources/read", {"uri": "ui://bridge/panel"}),
    "read-unlisted": ("resources/read", {"uri": "bridge://unlisted/x"}),
    "read-template": ("resources/read", {"uri": "bridge://rows/users"}),
    "read-nothing": ("resources/read", {"uri": "bridge://nothing"}),
    "prompt": ("prompts/get", {"name": "greet", "arguments": {"name": "Änne"}}),
    "prompt-blocks": ("prompts/get", {"name": "every_block"}),
    "prompt-incomplete": ("prompts/get", {"name": "greet"}),
    "prompt-unknown": ("prompts/get", {"name": "nobody"}),
    "complete": (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": "a"}},
    ),
    "complete-uri": (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "bridge://rows/{table}"}, "argument": {"name": "table", "value": ""}},
    ),
    **{
        f"error{code}": call("fail", code=code, message="no ☃", data={"deep": [None]})
        for code in (-32602, -32603, -32000, -32021, -32042, -1, 7)
    },
    "error-without-data": call("fail", code=-32603, message="no ☃"),
    "needs": call("needs"),
    "unknown-tool": call("no_such_tool"),
    "unknown-method": ("no/such/method", {"a": 1}),
    "steps": call("steps", count=3),
    "chatter": call("chatter"),
    **{
        tool: call(tool)
        for tool in ("elicit", "elicit_stateless", "elicit_url", "sample", "sample_twice", "roots", "all_at_once")
    },
    "sample-tools": call("sample", tools=True),
}

LISTS = ("tools", "resources", "templates", "prompts")


class Sides(NamedTuple):
    direct: Any
    through: Any


@pytest.fixture(scope="module", params=KINDS)
def sides(request, tmp_path_factory, make_bridge):
    """A host on an upstream, and an equal one on an equal upstream behind a gateway."""
    kind = request.param
    made = make_bridge(tmp_path_factory.mktemp("fidelity"))
    try:
        config = made.config({"bridge": made.upstream(kind, "behind")})
        where = config if kind.endswith("stdio") else made.gateway(config)
        first = made.host(kind, where)
        first.call("counter")  # since then the gateway knows what the upstream says about itself
        made.close_host(first)
        sides = Sides(made.direct(kind, "alone"), made.host(kind, where))
        for host in sides:
            host.log_from("debug")
        yield sides
    finally:
        made.close()


def differences(direct: Any, through: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two JSON values differ, and how: numbers and booleans of another type differ too."""
    if isinstance(direct, dict) and isinstance(through, dict):
        for key in [*direct, *(key for key in through if key not in direct)]:
            inner = f"{place}.{key}" if place else key
            yield from differences(direct.get(key, ABSENT), through.get(key, ABSENT), inner)
    elif isinstance(direct, list) and isinstance(through, list) and len(direct) == len(through):
        for index, (one, other) in enumerate(zip(direct, through, strict=True)):
            yield from differences(one, other, f"{place}[{index}]")
    elif type(direct) is not type(through) or direct != through:
        yield place, direct, through


def unexplained(era: str, name: str, direct: Any, through: Any) -> list[str]:
    found: list[str] = []
    rules = [one for one in ALLOWED if fnmatchcase(name, one.request) and one.era in (None, era)]
    for place, one, other in differences(direct, through):
        why = next((rule.why for rule in rules if fnmatchcase(place, rule.place)), None)
        line = f"{name}: {place}: directly {one!r}, through the gateway {other!r}"
        print(line if why is None else f"{line} (allowed: {why})")
        if why is None:
            found.append(line)
    return found


def recorded(host: Any, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Everything that a request brings: its result or error, what came beside it, and what the host was asked."""
    heard, asked = len(host.heard), len(host.asked)
    try:
        answer: dict[str, Any] = {"result": host.request(method, params)}
    except Exception as raised:
        if type(raised).__name__ != "Refused":
            raise
        error: Any = raised
        answer = {"error": {"code": error.code, "message": error.message, "data": error.data, "status": error.status}}
    wanted = {"steps": ["notifications/progress"], "chatter": ["notifications/message"]}.get(params.get("name", ""), [])
    beside = {one: [own(told) for told in host.told(one, heard)] for one in wanted}
    return {**answer, "beside": beside, "asked": [(method, own(params)) for method, params, _ in host.asked[asked:]]}


def own(params: dict[str, Any]) -> dict[str, Any]:
    """Without what numbers a message of one connection."""
    return {key: value for key, value in params.items() if key not in ("progressToken", "elicitationId")}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_brings_through_the_gateway_what_it_brings_directly(sides, name):
    method, params = REQUESTS[name]
    direct, through = (recorded(host, method, params) for host in sides)
    for part in ("result", "error"):
        assert (part in direct) == (part in through), f"directly {direct}, through the gateway {through}"
    found = unexplained(
        sides.direct.era, name, direct.get("result", direct.get("error")), through.get("result", through.get("error"))
    )
    found += unexplained(sides.direct.era, name, direct["beside"], through["beside"])
    found += unexplained(
        sides.direct.era, name, [list(one) for one in direct["asked"]], [list(one) for one in through["asked"]]
    )
    assert not found, "\n".join(found)


@pytest.mark.parametrize("kind", LISTS)
def test_a_list_is_through_the_gateway_what_it_is_directly(sides, kind):
    (direct, pages), (through, merged) = (host.pages(kind) for host in sides)
    # Uris of pages (MCP Apps) have the upstream's name in front, and nothing else is changed in them.
    direct = json.loads(json.dumps(direct).replace('"ui://', '"ui://bridge/'))
    assert not (found := unexplained(sides.direct.era, kind, direct, through)), "\n".join(found)
    # Pages are the gateway's own; what stands beside their entries is the same on every one of the upstream's.
    rest = [{key: value for key, value in page.items() if key != "nextCursor"} for page in (pages[0], merged[0])]
    assert not (found := unexplained(sides.direct.era, kind, *rest)), "\n".join(found)


def test_the_gateway_opens_as_the_upstream_does(sides):
    assert not (found := unexplained(sides.direct.era, "open", sides.direct.server, sides.through.server)), "\n".join(
        found
    )


def test_the_client_that_the_upstream_sees_is_the_host(sides):
    for host in sides:
        assert host.call("echo_client")["structuredContent"]["client"] == host.info


@pytest.mark.parametrize("kind", ["tools", "resources", "prompts"])
def test_an_announcement_is_through_the_gateway_what_it_is_directly(sides, kind):
    told = []
    for host in sides:
        host.listen()
        since = len(host.heard)
        host.call("change", kind=kind)
        told.append(host.hears(f"notifications/{kind}/list_changed", since=since))
        told[-1].get("_meta", {}).pop(META + "subscriptionId", None)
    assert not (found := unexplained(sides.direct.era, "change", *told)), "\n".join(found)


def test_an_update_is_through_the_gateway_what_it_is_directly(sides):
    told = []
    for host in sides:
        host.listen("bridge://one")
        since = len(host.heard)
        host.call("touch", uri="bridge://one")
        told.append(host.hears("notifications/resources/updated", since=since))
        told[-1].get("_meta", {}).pop(META + "subscriptionId", None)
    assert not (found := unexplained(sides.direct.era, "touch", *told)), "\n".join(found)
