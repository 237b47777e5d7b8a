"""A raw MCP upstream of either era that does everything the protocol has, from the standard library alone.

`python bridge_server.py [--era handshake|modern|both] [--transport stdio|http] [--revision DATE] [FLAG ...]`

On http it prints its port on a line; /mcp is Streamable HTTP, /sse the legacy transport (handshake only). Interactive
tools are written once, as generators that yield what they ask of the host: in the handshake era each question is a
request of its own, in the modern one an `input_required` result whose requestState has to come back byte for byte.

Flags: quiet (instructions and list_changed are not offered), dumb (methods that it does not know get no answer),
stale-get (refuses the standing stream), other (its lists name other things, but one uri of its neighbour's too).
"""

import base64
import itertools
import json
import os
import queue
import selectors
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

HANDSHAKE_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
ENVELOPE = {META + key for key in ("protocolVersion", "clientInfo", "clientCapabilities", "logLevel")}
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
PATIENCE = 20.0
PAGE = 7

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA=="

BLOCKS = {
    "text": {"type": "text", "text": "höher \u2028 ☃", "annotations": {"audience": ["user"], "priority": 0.25}},
    "image": {"type": "image", "data": PIXEL, "mimeType": "image/png", "_meta": {"example.org/dpi": 96}},
    "audio": {"type": "audio", "data": SOUND, "mimeType": "audio/wav", "annotations": {"mood": "calm"}},
    "embedded_text": {
        "type": "resource",
        "resource": {"uri": "bridge://embedded", "mimeType": "text/markdown", "text": "# in", "_meta": {"a.b/c": [1]}},
    },
    "embedded_blob": {
        "type": "resource",
        "resource": {"uri": "bridge://bytes", "mimeType": "application/octet-stream", "blob": "AAEC/w=="},
    },
    "link": {
        "type": "resource_link",
        "uri": "bridge://unlisted/made",
        "name": "made",
        "title": "Made",
        "size": 17,
        "mimeType": "text/plain",
    },
    "unknown_type": {"type": "video", "data": "AAAA", "codec": {"name": "av1", "hints": [None, 1, 2.5]}},
    "unknown_fields": {"type": "text", "text": "more", "futureField": {"a": None, "n": 12345678901234567890}},
}

STRUCTURED = {
    "object": {"n": 12345678901234567890, "text": "naïve \u2028 ☃", "none": None, "deep": {"list": [1, 2.5, False]}},
    "array": [1, {"two": 2}, None],
    "scalar": 42,
    "null": None,
}

FORM = {
    "message": "Who are you? ☃",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Name", "default": "nobody"},
            "age": {"type": "integer", "minimum": 0},
            "color": {"type": "string", "enum": ["red", "blue"], "enumNames": ["Red", "Blue"]},
        },
        "required": ["name"],
        "x-future": {"kept": True},
    },
}

SAMPLE = {
    "messages": [
        {"role": "user", "content": {"type": "text", "text": "What is this?"}},
        {"role": "user", "content": {"type": "image", "data": PIXEL, "mimeType": "image/png"}},
    ],
    "systemPrompt": "Be brief.",
    "maxTokens": 100,
    "temperature": 0.5,
    "stopSequences": ["END"],
    "modelPreferences": {"hints": [{"name": "claude-sonnet"}, {"name": "gpt"}], "intelligencePriority": 0.75},
    "metadata": {"example.org/provider": {"seed": 7}},
}

SAMPLE_TOOLS = {
    "tools": [{"name": "weather", "description": "of a city", "inputSchema": {"type": "object", "x-future": 1}}],
    "toolChoice": {"mode": "auto"},
}


class Refusal(Exception):
    """A JSON-RPC error to answer with."""

    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


class Abandoned(Exception):
    """The request was cancelled: there is no answer."""


class World:
    """What all sessions of this process have in common."""

    def __init__(self, era, revision, flags):
        self.era = era
        self.revision = revision
        self.flags = flags
        self.numbers = itertools.count(1)
        self.extra = {"tools": [], "resources": [], "prompts": []}
        self.sessions = []
        self.listeners = []
        self.states = {}
        self.tasks = {}
        self.events = []
        self.happened = threading.Condition()

    def record(self, tag, what):
        with self.happened:
            self.events.append((tag, what))
            self.happened.notify_all()

    def recorded(self, tag):
        return [what for other, what in self.events if other == tag]

    def wait_for(self, tag, what, seconds):
        with self.happened:
            self.happened.wait_for(lambda: what is None or what in self.recorded(tag), min(seconds, PATIENCE))
            return self.recorded(tag)

    def listening(self):
        with self.happened:
            return list(self.listeners)

    def announce(self, kind):
        """Tell whoever wants to know that a list has changed."""
        for session in [session for session in self.sessions if session.ready]:
            session.push({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"})
        for listener in self.listening():
            if listener.filter.get(f"{kind}ListChanged"):
                listener.tell(f"notifications/{kind}/list_changed", {})

    def updated(self, uri):
        params = {"uri": uri, "title": "it moved"}
        for session in [session for session in self.sessions if uri in session.uris]:
            session.push({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params})
        for listener in self.listening():
            if uri in (listener.filter.get("resourceSubscriptions") or ()):
                listener.tell("notifications/resources/updated", params)


class Listener:
    """One `subscriptions/listen`."""

    def __init__(self, request_id, wanted, send):
        self.id = request_id
        self.filter = wanted
        self.send = send

    def tell(self, method, params):
        params = {**params, "_meta": {META + "subscriptionId": self.id}}
        self.send({"jsonrpc": "2.0", "method": method, "params": params})


class Session:
    """One conversation: of the handshake era, or everything that a modern connection asks."""

    def __init__(self, world, push):
        self.world = world
        self.push = push
        self.id = f"session-{os.getpid()}-{next(world.numbers)}"
        self.revision = None
        self.client = {}
        self.capabilities = {}
        self.level = "info"
        self.uris = set()
        self.count = 0
        self.waiting = {}
        self.running = {}
        self.notified = []
        self.reader = None
        world.sessions.append(self)

    @property
    def ready(self):
        return self.revision is not None

    def close(self):
        if self in self.world.sessions:
            self.world.sessions.remove(self)
        for call in list(self.running.values()):
            call.cancelled.set()

    def handle(self, message, send, gone=lambda: False, http=None):
        """Answer one message: by `send`, on which everything that belongs to it goes too."""
        if "method" not in message:
            waiting = self.waiting.pop(message.get("id"), None)
            if waiting is not None:
                waiting.put(message)
            return
        method, params = message["method"], message.get("params") or {}
        if "id" not in message:
            self.notified.append({"method": method, "params": params})
            if method == "notifications/cancelled" and params.get("requestId") in self.running:
                self.running[params["requestId"]].cancelled.set()
            return
        call = Call(self, message, send, gone, http or {})
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            result = call.answer()
        except Refusal as refusal:
            send(answer | {"error": refusal.error})
        except Abandoned:
            send(None)
        else:
            send(answer | {"result": result} if result is not None else None)
        finally:
            self.running.pop(call.key, None)


class Call:
    """One request."""

    def __init__(self, session, message, send, gone, headers):
        self.session, self.world = session, session.world
        self.id = message["id"]
        self.key = (self.id, id(message)) if headers.get("modern") else self.id
        self.method = message["method"]
        self.params = message.get("params") or {}
        self.meta = self.params.get("_meta") or {}
        self.arguments = self.params.get("arguments") or {}
        self.modern = META + "protocolVersion" in self.meta and self.world.era != "handshake"
        self.send = send
        self.gone = gone
        self.headers = headers
        self.cancelled = threading.Event()
        session.running[self.key] = self

    # -------------------------------------------------------------------------------- what is said beside the answer

    @property
    def capabilities(self):
        return self.meta.get(META + "clientCapabilities") or {} if self.modern else self.session.capabilities

    def notify(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def progress(self, step, total, message):
        if (token := self.meta.get("progressToken")) is not None:
            told = {"progressToken": token, "progress": step, "total": total, "message": message}
            self.notify("notifications/progress", told)

    def log(self, level, data, logger=None):
        least = self.meta.get(META + "logLevel") if self.modern else self.session.level
        if least in LEVELS and LEVELS.index(level) >= LEVELS.index(least):
            told = {"level": level, "data": data} | ({"logger": logger} if logger else {})
            self.notify("notifications/message", told)

    def wait(self, ready, seconds=PATIENCE):
        """Wait until `ready()` gives something, the request is cancelled or the host hangs up."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.cancelled.is_set() or (self.modern and self.gone()):
                raise Abandoned
            if (found := ready()) is not None:
                return found
            self.cancelled.wait(0.02)
        return None

    # --------------------------------------------------------------------------------------------- asking the host

    def drive(self, asking, *, stateless=False):
        """Run a tool that asks; what it returns in the end."""
        try:
            if self.modern:
                return self.drive_modern(asking, stateless)
            answers = None
            while True:
                questions = asking.send(answers)
                try:
                    answers = self.ask(questions)
                except Abandoned as abandoned:
                    asking.throw(abandoned)
        except StopIteration as stop:
            return stop.value

    def ask(self, questions):
        pending = {}
        for key, question in questions.items():
            if not declared(self.capabilities, question, self.session.revision):
                raise Refused(f"this host cannot be asked {question['method']}")
            request_id = f"ask-{next(self.world.numbers)}"
            pending[key] = self.session.waiting[request_id] = queue.Queue()
            self.send({"jsonrpc": "2.0", "id": request_id, **question})
        answers = {}
        for key, waiting in pending.items():
            answer = self.wait(lambda waiting=waiting: None if waiting.empty() else waiting.get())
            if answer is None:
                raise Refused("the host never answered")
            if "error" in answer:
                raise Refused(f"the host refused with {answer['error']['code']}: {answer['error']['message']}")
            answers[key] = answer["result"]
        return answers

    def drive_modern(self, asking, stateless):
        past = []
        if "inputResponses" in self.params or "requestState" in self.params:
            past = self.past(stateless)
        questions = asking.send(None)
        for answers in past:
            if set(answers) != set(questions):
                raise Refusal(-32602, f"asked {sorted(questions)}, answered {sorted(answers)}")
            questions = asking.send(answers)
        for question in questions.values():
            if not declared(self.capabilities, question, MODERN):
                needed = {"requiredCapabilities": required(question)}
                raise Refusal(-32021, "Missing required client capability", needed)
        asked = {key: modernised(question) for key, question in questions.items()}
        state = {} if stateless else {"requestState": self.mint(past)}
        return {"resultType": "input_required", "inputRequests": asked, **state, "x-future": {"kept": None}}

    def mint(self, past):
        # Nothing that survives being parsed, trimmed or escaped once too often.
        state = f' {{"state": {next(self.world.numbers)}}} ☃\u2028%20+/=="\\ {os.urandom(4).hex()} '
        self.world.states[state] = (self.params.get("name"), self.id, past)
        return state

    def past(self, stateless):
        responses = self.params.get("inputResponses")
        if not isinstance(responses, dict):
            raise Refusal(-32602, "a retry without inputResponses")
        if stateless:
            if "requestState" in self.params:
                raise Refusal(-32602, "there was no requestState to bring back")
            return [responses]
        found = self.world.states.get(self.params.get("requestState"))
        if found is None:
            raise Refusal(-32602, f"requestState is not what was given: {self.params.get('requestState')!r}")
        name, first_id, past = found
        if name != self.params.get("name") or first_id == self.id:
            raise Refusal(-32602, "requestState of another call, or a retry with the id of the first try")
        return [*past, responses]

    # ------------------------------------------------------------------------------------------------------ methods

    def answer(self):
        if META + "protocolVersion" in self.meta and self.world.era != "handshake":
            return self.answer_modern()
        if self.world.era == "modern":
            if self.method == "initialize":
                asked = self.params.get("protocolVersion")
                raise Refusal(-32022, "Unsupported protocol version", {"supported": [MODERN], "requested": asked})
            raise Refusal(-32602, "the request has no envelope")
        if self.method == "initialize":
            return self.initialize()
        if self.method == "ping":
            return {}
        if not self.session.ready:
            if "dumb" in self.world.flags:
                return None
            known = self.method in METHODS
            raise Refusal(-32600 if known else -32601, "not initialized" if known else "Method not found")
        match self.method:
            case "logging/setLevel":
                self.session.level = self.params["level"]
                return {}
            case "resources/subscribe":
                self.session.uris.add(self.params["uri"])
                return {}
            case "resources/unsubscribe":
                self.session.uris.discard(self.params["uri"])
                return {}
        return self.served()

    def answer_modern(self):
        if self.meta[META + "protocolVersion"] != MODERN:
            asked = self.meta[META + "protocolVersion"]
            raise Refusal(-32022, "Unsupported protocol version", {"supported": [MODERN], "requested": asked})
        if META + "clientCapabilities" not in self.meta:
            raise Refusal(-32602, "no clientCapabilities")
        if self.headers.get("modern"):
            self.check_headers()
        if self.method == "server/discover":
            result = {
                "supportedVersions": [MODERN],
                "capabilities": offered(self.world, modern=True),
                "ttlMs": 5000,
                "cacheScope": "public",
            } | instructions(self.world)
        elif self.method == "subscriptions/listen":
            return self.listen()
        else:
            result = self.served()
        stamp = {META + "serverInfo": server_info(self.world)}
        meta: Any = result.get("_meta") or {}
        rest: Any = result
        return {"resultType": "complete", **rest, "_meta": {**meta, **stamp}}

    def check_headers(self):
        """Headers repeat the body: -32020 where they do not."""
        key = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(self.method)
        expected = {"mcp-protocol-version": MODERN, "mcp-method": self.method}
        if key is not None:
            expected["mcp-name"] = self.params.get(key)
        if self.method == "tools/call" and self.params.get("name") == "region" and "region" in self.arguments:
            expected["mcp-param-region"] = self.arguments["region"]
        for name, value in expected.items():
            given = decoded(self.headers.get(name))
            if given != value:
                raise Refusal(-32020, f"header {name} is {given!r}, the body says {value!r}")

    def initialize(self):
        asked = self.params["protocolVersion"]
        newest = HANDSHAKE_REVISIONS.index(self.world.revision)
        known = HANDSHAKE_REVISIONS[: newest + 1]
        self.session.revision = asked if asked in known else self.world.revision
        self.session.client = self.params.get("clientInfo") or {}
        self.session.capabilities = self.params.get("capabilities") or {}
        return {
            "protocolVersion": self.session.revision,
            "capabilities": offered(self.world, modern=False),
            "serverInfo": server_info(self.world),
        } | instructions(self.world)

    def listen(self):
        wanted = self.params.get("notifications") or {}
        kinds = ("toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions")
        honoured = {key: value for key, value in wanted.items() if key in kinds}
        listener = Listener(self.id, honoured, self.send)
        with self.world.happened:  # nothing is told before this, and nothing is missed after it
            listener.tell("notifications/subscriptions/acknowledged", {"notifications": honoured})
            self.world.listeners.append(listener)
        try:
            while True:
                self.wait(lambda: None)
        finally:
            self.world.listeners.remove(listener)

    def served(self):
        match self.method:
            case "tools/list":
                return self.page("tools", "tools", TOOLS + self.world.extra["tools"])
            case "resources/list":
                return self.page("resources", "resources", resources(self.world) + self.world.extra["resources"])
            case "resources/templates/list":
                return self.page("templates", "resourceTemplates", TEMPLATES)
            case "prompts/list":
                return self.page("prompts", "prompts", PROMPTS + self.world.extra["prompts"])
            case "resources/read":
                return self.read(self.params["uri"])
            case "prompts/get":
                return self.prompt(self.params["name"])
            case "completion/complete":
                return self.complete()
            case "tools/call":
                return self.call()
            case "tasks/get" | "tasks/update" | "tasks/cancel" if self.modern:
                return self.task()
        if "dumb" in self.world.flags:
            return None
        raise Refusal(-32601, "Method not found", {"method": self.method})

    def page(self, kind, field, items):
        cursor = self.params.get("cursor")
        start = 0
        if cursor is not None:
            if not cursor.startswith(f"{kind}☃"):
                raise Refusal(-32602, "no such cursor", {"cursor": cursor})
            start = int(cursor.rpartition("☃")[2])
        result = {field: items[start : start + PAGE], "_meta": {f"example.org/{kind}": {"listed": True}}}
        if start + PAGE < len(items):
            result["nextCursor"] = f"{kind}☃{start + PAGE}"
        return result | self.cacheable()

    def cacheable(self):
        return {"ttlMs": 60_000, "cacheScope": "public"} if self.modern else {}

    def read(self, uri):
        if "other" in self.world.flags:
            return {"contents": [{"uri": uri, "text": f"{uri} of another"}]} | self.cacheable()
        if uri in CONTENTS:
            return {"contents": CONTENTS[uri], "_meta": {"example.org/read": 1}} | self.cacheable()
        if uri.startswith(("bridge://unlisted/", "bridge://rows/", "bridge://umlaut/")):
            contents = [{"uri": uri, "mimeType": "text/plain", "text": f"read {uri}", "future": {"kept": True}}]
            return {"contents": contents} | self.cacheable()
        raise Refusal(-32602 if self.modern else -32002, f"Resource not found: {uri}", {"uri": uri})

    def prompt(self, name):
        given = self.params.get("arguments") or {}
        match name:
            case "greet":
                if "name" not in given:
                    raise Refusal(-32602, "argument name is missing", {"missing": ["name"]})
                words = {"type": "text", "text": f"Greet {given['name']} in {given.get('tongue', 'any tongue')}."}
                return {"description": "A greeting", "messages": [{"role": "user", "content": words}]}
            case "every_block":
                messages = [{"role": "user", "content": block, "future": 1} for block in BLOCKS.values()]
                return {"messages": messages, "_meta": {"example.org/prompt": True}, "x-future": [None]}
        if any(prompt["name"] == name for prompt in PROMPTS + self.world.extra["prompts"]):
            return {"messages": [{"role": "assistant", "content": {"type": "text", "text": name}}]}
        raise Refusal(-32602, f"Unknown prompt: {name}", {"name": name})

    def complete(self):
        ref, argument = self.params["ref"], self.params["argument"]
        of = ref.get("name") or ref.get("uri")
        tongue = ((self.params.get("context") or {}).get("arguments") or {}).get("tongue", "none")
        values = [f"{of}|{argument['name']}|{value}|{tongue}" for value in ("anna", "annika", "bob")]
        values = [value for value in values if value.split("|")[2].startswith(argument["value"])]
        return {"completion": {"values": values, "total": 17, "hasMore": True, "future": 1}}

    def call(self):
        name = self.params.get("name")
        tool = getattr(self, f"tool_{name}", None)
        if tool is None:
            if any(extra["name"] == name for extra in self.world.extra["tools"]):
                return said(name)
            raise Refusal(-32602, f"Unknown tool: {name}", {"name": name})
        if name not in ASKING:
            return tool()
        try:
            return self.drive(tool(), stateless=name == "elicit_stateless")
        except Refused as refused:
            return said(str(refused)) | {"isError": True}

    # -------------------------------------------------------------------------------------------------------- tools

    def tool_content(self):
        if "kind" in self.arguments:
            return {"content": [BLOCKS[self.arguments["kind"]]]}
        meta = {"example.org/trace": None, "example.org/deep": {"a": [1]}}
        return {"content": list(BLOCKS.values()), "isError": False, "_meta": meta, "later": [1, {"two": 3}]}

    def tool_structured(self):
        value = STRUCTURED[self.arguments["kind"]]
        return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}

    def tool_failing(self):
        return {"content": [BLOCKS["text"], BLOCKS["image"]], "isError": True}

    def tool_steps(self):
        count = self.arguments.get("count", 3)
        for step in range(1, count + 1):
            self.cancelled.wait(0.03)  # told faster, a host may be told the newest alone
            self.progress(step / 2, count / 2, f"step {step} ☃")
        return said("stepped")

    def tool_chatter(self):
        for level in LEVELS:
            self.log(level, {"said": level, "deep": [None, 1.5]}, "bridge.chatter")
        return said("chattered")

    def tool_slow(self):
        tag = self.arguments["tag"]
        self.world.record(tag, "started")
        self.progress(self.arguments.get("at", 0), 1, "started")
        try:
            self.wait(lambda: None, self.arguments.get("seconds", PATIENCE))
        except Abandoned:
            self.world.record(tag, "cancelled")
            raise
        self.world.record(tag, "finished")
        return said("slept")

    def tool_recorded(self):
        wait_for = self.arguments.get("what")
        found = self.world.wait_for(self.arguments["tag"], wait_for, self.arguments.get("seconds", 5))
        return said(json.dumps(found)) | {"structuredContent": {"events": found}}

    def tool_elicit(self):
        tag = self.arguments.get("tag")
        try:
            answers = yield {"form": {"method": "elicitation/create", "params": {**FORM, **self.words()}}}
        except Abandoned:
            self.world.record(tag, "cancelled")
            raise
        self.world.record(tag, "answered")
        return answered(answers)

    def tool_elicit_stateless(self):
        return answered((yield {"form": {"method": "elicitation/create", "params": {**FORM, **self.words()}}}))

    def tool_elicit_url(self):
        number = f"elicitation-{next(self.world.numbers)}"
        told = {"mode": "url", "message": "Sign in", "url": "https://example.org/sign?in=☃", "elicitationId": number}
        answers = yield {"page": {"method": "elicitation/create", "params": told}}
        if not self.modern:
            self.notify("notifications/elicitation/complete", {"elicitationId": number})
        return answered(answers)

    def tool_sample(self):
        tools = SAMPLE_TOOLS if self.arguments.get("tools") else {}
        return answered((yield {"sample": {"method": "sampling/createMessage", "params": SAMPLE | tools}}))

    def tool_sample_twice(self):
        first = yield {"sample": {"method": "sampling/createMessage", "params": SAMPLE}}
        told = {**SAMPLE, "systemPrompt": f"You said {first['sample']['content']['text']}"}
        second = yield {"sample": {"method": "sampling/createMessage", "params": told}}
        return answered([first["sample"], second["sample"]])

    def tool_roots(self):
        return answered((yield {"roots": {"method": "roots/list"}}))

    def tool_all_at_once(self):
        return answered(
            (
                yield {
                    "form": {"method": "elicitation/create", "params": FORM},
                    "sample": {"method": "sampling/createMessage", "params": SAMPLE},
                    "roots": {"method": "roots/list"},
                }
            )
        )

    def tool_elicit_forever(self):
        for number in itertools.count():
            yield {"form": {"method": "elicitation/create", "params": {**FORM, "message": f"Again? {number}"}}}

    def tool_elicit_then_slow(self):
        yield {"form": {"method": "elicitation/create", "params": FORM}}
        return self.tool_slow()

    def tool_elicit_late(self):
        """Asks only after a while."""
        if "inputResponses" not in self.params:
            self.wait(lambda: None, self.arguments["seconds"])
        return answered((yield {"form": {"method": "elicitation/create", "params": FORM}}))

    def tool_content_late(self):
        self.wait(lambda: None, self.arguments["seconds"])
        return self.tool_content()

    def tool_fail_late(self):
        self.wait(lambda: None, self.arguments["seconds"])
        raise Refusal(-32050, "it failed late")

    def words(self):
        return {"message": self.arguments["message"]} if "message" in self.arguments else {}

    def tool_counter(self):
        self.session.count += 1
        seen = {"session": self.session.id, "count": self.session.count}
        return said(json.dumps(seen)) | {"structuredContent": seen}

    def tool_echo(self):
        return {"content": [], "structuredContent": {"arguments": self.arguments}}

    def tool_echo_meta(self):
        return {"content": [], "structuredContent": {"meta": self.meta}}

    def tool_echo_client(self):
        seen = {
            "client": self.meta.get(META + "clientInfo") if self.modern else self.session.client,
            "capabilities": self.capabilities,
            "revision": self.meta.get(META + "protocolVersion") if self.modern else self.session.revision,
            "era": "modern" if self.modern else "handshake",
            "session": self.session.id,
        }
        return {"content": [], "structuredContent": seen}

    def tool_notified(self):
        found = [one for one in self.session.notified if one["method"] == self.arguments["method"]]
        return {"content": [], "structuredContent": {"notified": found}}

    def tool_later(self):
        """A task, for whoever takes one: it asks for a name, and its result is a picture and that name."""
        if not self.modern or TASKS not in (self.capabilities.get("extensions") or {}):
            return said("at once")
        task = {"taskId": f"task-{len(self.world.tasks)}-☃", "status": "working", "ttlMs": 60_000, "pollIntervalMs": 10}
        self.world.tasks[task["taskId"]] = task
        return {"resultType": "task", **task, "x-future": [None]}

    def tool_chart(self):
        """What a page and a model read: at once, or as the result of a task."""
        return self.given_later(CHART) if self.arguments.get("later") else CHART

    def tool_chunk(self):
        """What only a page reads."""
        return self.given_later(CHUNK) if self.arguments.get("later") else CHUNK

    def given_later(self, result):
        task_id = f"task-{len(self.world.tasks)}"
        self.world.tasks[task_id] = {"taskId": task_id, "status": "completed", "result": result}
        return {"resultType": "task", "taskId": task_id, "status": "working", "ttlMs": 60_000, "pollIntervalMs": 10}

    def task(self):
        task = self.world.tasks.get(self.params["taskId"])
        if task is None:
            raise Refusal(-32602, "no such task")
        if self.method == "tasks/cancel":
            task["status"] = "cancelled"
            return {}
        if self.method == "tasks/update":
            answer = self.params["inputResponses"]["name"]["content"]["name"]
            content = [BLOCKS["image"], {"type": "text", "text": answer}]
            task |= {"status": "completed", "result": {"content": content}, "x-future": {"kept": None}}
            task.pop("inputRequests")
            return {}
        if task["status"] == "working":  # of `later`
            question = {"method": "elicitation/create", "params": {"mode": "form", **FORM, "message": "Name?"}}
            task |= {"status": "input_required", "inputRequests": {"name": question}}
        return dict(task)

    def tool_needs(self):
        needed = {"requiredCapabilities": {"sampling": {"tools": {}}}, "x-future": [None, "☃"]}
        raise Refusal(-32021, "Missing required client capability: sampling", needed)

    def tool_fail(self):
        raise Refusal(self.arguments["code"], self.arguments.get("message", "no ☃"), self.arguments.get("data"))

    def tool_change(self):
        kind = self.arguments["kind"]
        name = f"extra_{kind}_{next(self.world.numbers)}"
        new = {"tools": {"inputSchema": {"type": "object"}}, "resources": {"uri": f"bridge://unlisted/{name}"}}
        if not self.arguments.get("only_said"):
            self.world.extra[kind].append({"name": name, **new.get(kind, {})})
        self.world.announce(kind)
        return said(name)

    def tool_touch(self):
        self.world.updated(self.arguments["uri"])
        return said("touched")

    def tool_panel(self):
        return said("shown")

    def tool_region(self):
        return said(self.arguments.get("region", "nowhere"))

    def tool_wrong_id(self):
        self.send({"jsonrpc": "2.0", "id": f"not-{self.id}", "result": said("for nobody")})
        self.wait(lambda: None, self.arguments.get("seconds", PATIENCE))

    def tool_odd_type(self):
        return {"resultType": "surprise", "content": [{"type": "text", "text": "?"}], "surprise": 1}


class Refused(Exception):
    """The host cannot or would not answer: words for the model."""


def said(text):
    return {"content": [{"type": "text", "text": text}]}


def answered(answers):
    return said(json.dumps(answers)) | {"structuredContent": {"answers": answers}}


def required(question):
    params = question.get("params") or {}
    match question["method"]:
        case "elicitation/create":
            return {"elicitation": {"url" if params.get("mode") == "url" else "form": {}}}
        case "sampling/createMessage":
            return {"sampling": {"tools": {}} if "tools" in params else {}}
    return {"roots": {}}


def declared(capabilities, question, revision):
    ((name, parts),) = required(question).items()
    if not isinstance(given := capabilities.get(name), dict):
        return False
    if name == "elicitation" and (not given or revision == "2025-06-18"):
        return parts == {"form": {}}
    return all(part in given for part in parts)


def modernised(question):
    """The same question in the modern era, which knows no elicitationId."""
    params = question.get("params")
    if params is None:
        return question
    return {**question, "params": {key: value for key, value in params.items() if key != "elicitationId"}}


def decoded(value):
    if value is not None and value.startswith("=?base64?") and value.endswith("?="):
        return base64.b64decode(value[9:-2]).decode()
    return value


TASKS = "io.modelcontextprotocol/tasks"

CHART = {
    "content": [
        {"type": "text", "text": "Three rows."},
        {"type": "resource_link", "uri": "ui://bridge/panel", "name": "panel"},
        {
            "type": "resource",
            "resource": {"uri": "ui://bridge/card", "mimeType": "text/html", "text": "<p>card</p>" * 90},
        },
        {"type": "image", "data": PIXEL, "mimeType": "image/png", "_meta": {"example.org/item": [None]}},
    ],
    "structuredContent": {"rows": [{"n": 12345678901234567890, "none": None}] * 3, "picture": PIXEL},
    "_meta": {"ui": {"resourceUri": "ui://bridge/panel"}, "example.org/page": {"picture": PIXEL}},
}
CHUNK = {"content": [{"type": "text", "text": json.dumps({"bytes": "A" * 100_000})}], "structuredContent": [1, None]}


def offered(world, *, modern):
    told = {} if "quiet" in world.flags else {"listChanged": True}
    handshake = {} if modern else {"logging": {}}
    return {
        "tools": told,
        "resources": {**told, "subscribe": True},
        "prompts": told,
        "completions": {},
        **handshake,
        "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}},
        "experimental": {"example.org/x": {"a": 1}},
    }


def instructions(world):
    return {} if "quiet" in world.flags else {"instructions": "The bridge is to be crossed slowly. ☃"}


def server_info(world):
    return {"name": "bridge", "version": "1.2.3", "title": "The bridge", "x-future": True}


ASKING = (
    *("elicit", "elicit_stateless", "elicit_url", "sample", "sample_twice", "roots", "all_at_once"),
    *("elicit_forever", "elicit_then_slow", "elicit_late"),
)

NAMES = (
    *("content", "structured", "failing", "steps", "chatter", "slow", "recorded", *ASKING, "counter", "echo"),
    *("echo_meta", "echo_client", "notified", "needs", "fail", "change", "touch", "panel", "region", "wrong_id"),
    *("odd_type", "later", "chart", "chunk", "content_late", "fail_late"),
)

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"x": {"$anchor": "here", "type": ["string", "null"]}},
    "properties": {"x": {"$ref": "#/$defs/x"}},
    "x-future": {"kept": None},
}

SPECIAL = {
    "panel": {"_meta": {"ui": {"resourceUri": "ui://bridge/panel", "visibility": ["model", "app"]}}},
    "chart": {"_meta": {"ui": {"resourceUri": "ui://bridge/panel"}}, "outputSchema": {"type": "object"}},
    "chunk": {"_meta": {"ui": {"visibility": ["app"]}}},
    "region": {
        "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    },
    "structured": {"outputSchema": {"$schema": "https://json-schema.org/draft/2020-12/schema"}},
    "content": {
        "title": "Every kind",
        "annotations": {"readOnlyHint": True, "x-future": 1},
        "icons": [{"src": "https://example.org/i.png", "sizes": ["48x48"], "theme": "dark"}],
        "execution": {"taskSupport": "forbidden"},
    },
}

TOOLS = [
    {"name": name, "description": f"{name} ☃", "inputSchema": SCHEMA, "futureField": {"of": [name]}}
    | SPECIAL.get(name, {})
    for name in NAMES
]

CONTENTS = {
    "bridge://one": [{"uri": "bridge://one", "mimeType": "text/plain", "text": "one ☃", "future": {"kept": None}}],
    "bridge://bytes": [{"uri": "bridge://bytes", "mimeType": "application/octet-stream", "blob": "AAEC/w=="}],
    "bridge://two": [
        {"uri": "bridge://two/a", "text": "a", "_meta": {"example.org/part": 1}},
        {"uri": "bridge://two/b", "mimeType": "image/png", "blob": PIXEL},
    ],
    "ui://bridge/panel": [
        {
            "uri": "ui://bridge/panel",
            "mimeType": "text/html;profile=mcp-app",
            "text": "<h1>panel</h1>",
            "_meta": {"ui": {"csp": {"connectDomains": ["https://example.org"]}, "prefersBorder": True}},
        }
    ],
}


def resources(world):
    if "other" in world.flags:
        return [{"uri": "bridge://other", "name": "other"}, {"uri": "bridge://one", "name": "one of another"}]
    return RESOURCES


RESOURCES = [
    {
        "uri": "bridge://one",
        "name": "one",
        "title": "One",
        "size": 7,
        "mimeType": "text/plain",
        "annotations": {"lastModified": "2026-01-01T00:00:00Z"},
        "futureField": [1, None],
    },
    {"uri": "bridge://bytes", "name": "bytes", "size": 4, "_meta": {"example.org/r": 1}},
    {"uri": "bridge://two", "name": "two", "icons": [{"src": "data:image/png;base64," + PIXEL}]},
    {"uri": "ui://bridge/panel", "name": "panel", "mimeType": "text/html;profile=mcp-app", "_meta": {"ui": {"x": 1}}},
    *({"uri": f"bridge://unlisted/page{number}", "name": f"page{number}"} for number in range(6)),
]

TEMPLATES = [
    {"uriTemplate": "bridge://rows/{table}", "name": "rows", "title": "Rows", "futureField": {"kept": 1}},
    *({"uriTemplate": f"bridge://more{number}/{{x}}", "name": f"more{number}"} for number in range(8)),
]

PROMPTS = [
    {
        "name": "greet",
        "title": "Greet",
        "arguments": [
            {"name": "name", "title": "Whom", "description": "a name", "required": True, "x-future": 1},
            {"name": "tongue", "title": "Tongue"},
        ],
        "_meta": {"example.org/p": 1},
    },
    {"name": "every_block", "icons": [{"src": "https://example.org/p.png"}], "futureField": None},
    *({"name": f"prompt{number}"} for number in range(8)),
]

STATUSES = {-32700: 400, -32600: 400, -32601: 404, -32602: 400, -32020: 400, -32021: 400, -32022: 400}
"""HTTP statuses of errors in the modern era; of all others, 200."""

METHODS = (
    *("tools/list", "tools/call", "resources/list", "resources/read", "resources/templates/list", "prompts/list"),
    *("prompts/get", "completion/complete", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"),
)


# ------------------------------------------------------------------------------------------------------------- stdio


def serve_stdio(world):
    writing = threading.Lock()

    def send(message):
        if message is not None:
            line = json.dumps(message, ensure_ascii=False).encode()
            with writing:
                sys.stdout.buffer.write(line + b"\n")
                sys.stdout.buffer.flush()

    session = Session(world, send)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "method" not in message or "id" not in message or message["method"] in ("initialize", "logging/setLevel"):
            session.handle(message, send)  # in the order in which they came
        else:
            threading.Thread(target=session.handle, args=(message, send), daemon=True).start()
    os._exit(0)


# -------------------------------------------------------------------------------------------------------------- http


class Outbox:
    """The messages of one stream, in order; None ends it."""

    def __init__(self):
        self.messages = queue.Queue()

    def __call__(self, message):
        self.messages.put(message)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    world: Any = None
    everybody: Any = None
    sessions: Any = None
    streams: Any = None

    def log_message(self, *_):
        pass

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        parts = urlsplit(self.path)
        if parts.path == "/messages":
            session = self.streams.get(parse_qs(parts.query)["session"][0])
            if session is None:
                self.reply(404, {"error": "no such session"})
                return
            self.reply(202)
            threading.Thread(target=session.handle, args=(message, session.push), daemon=True).start()
        elif parts.path != "/mcp":
            self.reply(404, {"error": "nothing here"})
        elif META + "protocolVersion" in ((message.get("params") or {}).get("_meta") or {}):
            self.post_modern(message)
        else:
            self.post_handshake(message)

    def post_modern(self, message):
        if self.world.era == "handshake":
            error = {"code": -32000, "message": "Bad Request: no valid session"}
            self.reply(400, {"jsonrpc": "2.0", "id": message.get("id"), "error": error})
            return
        headers = {name.lower(): value for name, value in self.headers.items()} | {"modern": True}
        self.answer(self.everybody, message, headers)

    def post_handshake(self, message):
        given = self.headers.get("mcp-session-id")
        extra = {}
        if self.world.era == "modern":
            session = self.everybody
        elif message.get("method") == "initialize":
            session = Session(self.world, Outbox())
            self.sessions[session.id] = session
            extra = {"mcp-session-id": session.id}
        elif given is None:
            error = {"code": -32000, "message": "Bad Request: Mcp-Session-Id header is required"}
            self.reply(400, {"jsonrpc": "2.0", "id": message.get("id"), "error": error})
            return
        else:
            session = self.sessions.get(given)
            if session is None:
                error = {"code": -32001, "message": "Session not found"}
                self.reply(404, {"jsonrpc": "2.0", "id": message.get("id"), "error": error})
                return
        if "method" not in message or "id" not in message:
            session.handle(message, lambda answer: None)
            self.reply(202)
            return
        self.answer(session, message, None, extra)

    def answer(self, session, message, headers, extra=None):
        outbox = Outbox()
        threading.Thread(target=session.handle, args=(message, outbox, self.has_left, headers), daemon=True).start()
        first = outbox.messages.get()
        if first is not None and "method" not in first:
            code = first.get("error", {}).get("code")
            statuses = STATUSES if headers else {}
            self.reply(statuses.get(code, 200), first, extra)
            return
        self.stream(outbox, first, extra, keeps_sending=False)

    def has_left(self):
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self.connection, selectors.EVENT_READ)
                return bool(selector.select(0)) and not self.connection.recv(1, 2)  # MSG_PEEK
        except (OSError, ValueError):  # it is closed on this side already
            return True

    def do_GET(self):
        path = urlsplit(self.path).path
        if self.world.era == "modern" or "stale-get" in self.world.flags:
            self.reply(405)
        elif path == "/mcp" and self.headers.get("mcp-session-id") in self.sessions:
            session = self.sessions[self.headers["mcp-session-id"]]
            session.reader = self  # a stream that was opened later takes over
            self.stream(session.push, ..., None, keeps_sending=True, session=session)
        elif path == "/sse":
            outbox = Outbox()
            session = Session(self.world, outbox)
            self.streams[session.id] = session
            try:
                self.stream(
                    outbox, f"event: endpoint\ndata: /messages?session={session.id}\n\n", None, keeps_sending=True
                )
            finally:
                self.streams.pop(session.id, None)
                session.close()
        else:
            self.reply(404 if path != "/mcp" else 400, {"error": "nothing here"})

    def do_DELETE(self):
        session = self.sessions.pop(self.headers.get("mcp-session-id"), None)
        if session is not None:
            session.close()
            session.push(None)
        self.reply(200 if session else 404)

    def stream(self, outbox, first, extra, *, keeps_sending, session=None):
        """Write what comes, until the answer (or, on a stream that keeps sending, until the other side leaves)."""
        self.close_connection = True
        try:
            self.send_response(200)
            for name, value in {"content-type": "text/event-stream", "connection": "close", **(extra or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            if isinstance(first, str):
                self.wfile.write(first.encode())
            elif first is None:
                return
            elif first is not ...:
                self.event(first)
            self.wfile.flush()
            while True:
                try:
                    message = outbox.messages.get(timeout=0.5)
                except queue.Empty:
                    if self.has_left() or (session is not None and session.reader is not self):
                        return
                    continue
                if message is None and not keeps_sending:
                    return
                if message is not None:
                    self.event(message)
                    if "method" not in message and not keeps_sending:
                        return
        except OSError:
            return

    def event(self, message):
        self.wfile.write(b"event: message\ndata: " + json.dumps(message, ensure_ascii=False).encode() + b"\n\n")
        self.wfile.flush()

    def reply(self, status, value=None, extra=None):
        body = b"" if value is None else json.dumps(value, ensure_ascii=False).encode()
        try:
            self.send_response(status)
            for name, one in {"content-type": "application/json", **(extra or {})}.items():
                self.send_header(name, one)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True


class LoopbackServer(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass  # a client that hangs up in the middle is what some tests are about


def serve_http(world):
    Handler.world, Handler.sessions, Handler.streams = world, {}, {}
    Handler.everybody = Session(world, lambda message: None)
    listening = LoopbackServer(("127.0.0.1", 0), Handler)
    print(listening.server_address[1], flush=True)
    listening.serve_forever()


def main():
    options = {"--era": "handshake", "--transport": "stdio", "--revision": HANDSHAKE_REVISIONS[-1]}
    words = iter(sys.argv[1:])
    flags = set()
    for word in words:
        if word in options:
            options[word] = next(words)
        else:
            flags.add(word)
    world = World(options["--era"], options["--revision"], flags)
    (serve_http if options["--transport"] == "http" else serve_stdio)(world)


if __name__ == "__main__":
    main()
