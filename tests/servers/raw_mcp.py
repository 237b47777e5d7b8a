"""The protocol half of the raw servers: MCP by hand, from the standard library alone, with faults to order.

`Server.handle(message, send)` answers one JSON-RPC message by calling `send` with objects, some of which no SDK would
ever write. The scripts beside this one put it on a transport.
"""

import json
import os
import subprocess
import sys
import threading
import time

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"

ODD_RESULT = {
    "content": [
        {"type": "text", "text": "before", "futureField": {"deep": [1, 2.5, None]}},
        {"type": "video", "codec": "av1", "data": "AAAA"},
        {"type": "image", "data": "AAAA"},
    ],
    "structuredContent": {"n": 12345678901234567890, "text": "naïve \u2028 ☃"},
    "isError": None,
    "x-unknown": {"kept": True},
}

NAMES = (
    *("odd", "big", "pid", "die", "hang", "tick", "refuse", "env", "grow", "echo", "ask", "hold", "fork"),
    *("interactive", "strange_type", "heard", "swell", "card"),
)

HOLD = "import sys, time; held = open(sys.argv[1], 'w'); held.write('x'); held.flush(); time.sleep(600)"
"""Opens a named pipe, says so on it, and holds it open for as long as it lives."""

TOOLS = [
    {
        "name": name,
        "inputSchema": {"type": "object", "$defs": {"x": {"$anchor": "here"}}},
        "futureField": {"of": [name]},
    }
    for name in NAMES
]

APP = "ui://raw/board"
APP_TOOLS = [
    {"name": "board", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": APP}, "ui/resourceUri": APP}},
    {"name": "chunk", "inputSchema": {"type": "object"}, "_meta": {"ui": {"visibility": ["app"]}}},
]
APP_CONTENT = {
    "uri": APP,
    "mimeType": "text/html;profile=mcp-app",
    "text": "<!doctype html><title>board</title>",
    "_meta": {"ui": {"csp": {"connectDomains": ["https://example.org"]}, "prefersBorder": True}},
}

PROMPT_PAGES = [
    {
        "prompts": [
            {
                "name": "review",
                "title": "Review",
                "arguments": [{"name": "code", "title": "The code", "required": True, "later": 1}],
                "icons": [{"src": "data:image/png;base64,AAAA"}],
                "_meta": {"a/b": 1},
            }
        ],
        "nextCursor": "two",
        "ttlMs": 9_000,
        "_meta": {"raw/page": 1, "raw/first": True},
    },
    {"prompts": [{"name": "greet"}, "no object"], "ttlMs": 5_000, "_meta": {"raw/page": 2}},
]
PROMPT = {
    "description": "as asked",
    "messages": [
        {"role": "user", "content": {"type": "resource_link", "uri": "raw://unlisted", "name": "x", "later": 1}},
        {"role": "assistant", "content": {"type": "image", "mimeType": "image/png", "data": "AAAA", "_meta": {"k": 1}}},
        {"role": "user", "content": {"type": "video", "data": "AAAA"}, "later": None},
    ],
    "later": {"kept": True},
}

HEADER_TOOLS = [
    {
        "name": name,
        "inputSchema": {"type": "object", "properties": {"region": {"type": kind, "x-mcp-header": "Region"}}},
    }
    for name, kind in (("headers", "string"), ("bad_header", "object"))
]


def wait_for(pipe):
    """Until somebody opens the named pipe to write."""
    with open(pipe, "rb"):
        pass


class Refusal(Exception):
    """A JSON-RPC error to answer with."""

    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


class Server:
    """One server. `flags` order its faults; see where they are used.

    `apps`: it has tools with a page; `apps-if-declared`: for clients that declare the extension alone; `listed-pages`:
    these are listed a page, too. `slow-if-able`: clients that declare anything are answered when the named pipe GO (of
    the environment) is opened.
    """

    def __init__(self, flags=()):
        self.flags = set(flags)
        self.tools = [*TOOLS, *HEADER_TOOLS]
        self.declared = {}
        self.waiting = {}
        self.listeners = []
        self.notifications = []
        self.calls = {}
        self.lock = threading.Lock()

    def handle(self, message, send):
        """Answer one message: requests by `send`, everything else by remembering it."""
        if "method" not in message:
            self.waiting.pop(message.get("id"), lambda answer: None)(message)
            return
        if "id" not in message:
            self.notifications.append(message)
            return
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            result = self.result(message["method"], message.get("params") or {}, send)
        except Refusal as refusal:
            send(answer | {"error": refusal.error})
            return
        if result is not None:
            send(answer | {"result": result})

    def result(self, method, params, send):
        if "modern" in self.flags:
            self.check_envelope(method, params)
        match method:
            case "initialize":
                return self.initialize(params)
            case "server/discover":
                return self.discover()
            case "tools/list":
                return self.list_tools(params)
            case "resources/list" if "resources-fail" in self.flags:
                raise Refusal(-32603, "no resources today")
            case "resources/list" if "resources-hang" in self.flags:
                return None
            case "resources/list":
                shows = "listed-pages" in self.flags and self.shows_apps()
                pages = [{"uri": APP, "name": "board"}] if shows else []
                return {"resources": [{"uri": "raw://one", "name": "one", "size": 3, "later": 1}, *pages]}
            case "resources/templates/list":
                return {"resourceTemplates": [{"uriTemplate": "raw://{any}", "name": "any"}]}
            case "tools/call":
                self.calls[params["name"]] = self.calls.get(params["name"], 0) + 1
                return getattr(self, "call_" + params["name"])(params.get("arguments") or {}, params, send)
            case "prompts/list" if "prompts" in self.flags:
                return PROMPT_PAGES[params.get("cursor") == "two"]
            case "prompts/get" if "prompts" in self.flags:
                return PROMPT | {"asked": params}
            case "completion/complete" if "prompts" in self.flags:
                return {"completion": {"values": [params["ref"].get("name", "?")], "later": 1}, "asked": params}
            case "resources/read" if "apps" in self.flags and params["uri"] == APP:
                return {"contents": [APP_CONTENT], "ttlMs": 700}
            case "subscriptions/listen":
                self.listeners.append(send)
                return None
        raise Refusal(-32601, "Method not found")

    def check_envelope(self, method, params):
        meta = params.get("_meta") or {}
        if method == "initialize":
            raise Refusal(-32022, "Unsupported protocol version", {"supported": [MODERN], "requested": "2025-11-25"})
        if meta.get(META + "protocolVersion") != MODERN or META + "clientCapabilities" not in meta:
            raise Refusal(-32602, "no envelope")

    def initialize(self, params):
        self.declared = params["capabilities"]
        if "slow-if-able" in self.flags and self.declared:
            wait_for(os.environ["GO"])
        if "refuse-initialize" in self.flags:
            raise Refusal(-32603, "licence missing")
        revision = "2024-11-05" if "old" in self.flags else params["protocolVersion"]
        return {
            "protocolVersion": "1999-01-01" if "unknown-version" in self.flags else revision,
            "capabilities": self.capabilities(),
            "serverInfo": {"name": "raw", "version": "1", "more": True},
            "instructions": "be kind",
        }

    def discover(self):
        if "modern" not in self.flags:
            raise Refusal(-32601, "Method not found")
        return {
            "supportedVersions": [MODERN],
            "capabilities": self.capabilities(),
            "_meta": {META + "serverInfo": {"name": "raw-modern", "version": "1"}},
        }

    def capabilities(self):
        both = {"tools": {"listChanged": True}, "resources": {}}
        more = {"prompts": {"listChanged": True}, "completions": {}} if "prompts" in self.flags else {}
        return {"tools": {}} if "tools-only" in self.flags else both | more

    def list_tools(self, params):
        if "loop" in self.flags:
            return {"tools": [{"name": "again", "inputSchema": {}}], "nextCursor": "same"}
        if "pages" in self.flags:
            page = int(params.get("cursor") or 0)
            following = {"nextCursor": str(page + 1) if page < 3 else ""}
            return {"tools": [{"name": f"page{page}", "inputSchema": {}}, "no object", {"no": "name"}]} | following
        apps = "apps" in self.flags and ("apps-if-declared" not in self.flags or self.shows_apps())
        return {"tools": self.tools + (APP_TOOLS if apps else [])}

    def shows_apps(self):
        return META + "ui" in self.declared.get("extensions", {})

    def call_odd(self, arguments, params, send):
        return ODD_RESULT

    def call_big(self, arguments, params, send):
        return {"content": [{"type": "image", "mimeType": "image/png", "data": "A" * arguments["size"]}]}

    def call_chunk(self, arguments, params, send):
        return {"content": [{"type": "text", "text": json.dumps({"bytes": "A" * 200_000})}], "structuredContent": [1]}

    def call_board(self, arguments, params, send):
        data = {"rows": [{"n": 12345678901234567890, "none": None}]}
        return {"content": [{"type": "text", "text": "One row."}], "structuredContent": data, "_meta": {"k": [None]}}

    def call_card(self, arguments, params, send):
        card = {"uri": "ui://raw/card", "mimeType": "text/html", "text": "<!doctype html><title>card</title>"}
        return {"content": [{"type": "resource", "resource": card}]}

    def call_pid(self, arguments, params, send):
        return {"content": [], "structuredContent": {"pid": os.getpid()}}

    def call_die(self, arguments, params, send):
        print("giving up: \x1b[31mout of cheese\x1b[0m", file=sys.stderr, flush=True)
        if "signal" in arguments:
            os.kill(os.getpid(), arguments["signal"])
        os._exit(arguments.get("code", 3))

    def call_hang(self, arguments, params, send):
        return None

    def call_tick(self, arguments, params, send):
        token = params["_meta"]["progressToken"]
        for step in range(arguments["count"]):
            time.sleep(arguments["delay"])
            progress = {"progressToken": token, "progress": step + 1, "total": arguments["count"], "message": "tick"}
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
        return {"content": [{"type": "text", "text": "done"}]}

    def call_refuse(self, arguments, params, send):
        raise Refusal(-32042, "go there first", {"elicitations": [{"url": "https://example.org/x"}]})

    def call_env(self, arguments, params, send):
        return {"content": [], "structuredContent": {"env": dict(os.environ), "cwd": os.getcwd()}}

    def call_grow(self, arguments, params, send):
        with self.lock:
            self.tools = [*self.tools, {"name": f"extra{len(self.tools)}", "inputSchema": {}}]
        for listener in self.listeners or (send,):
            listener({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return {"content": []}

    def call_echo(self, arguments, params, send):
        return {"content": [], "structuredContent": {"params": params}}

    def call_ask(self, arguments, params, send):
        answers = {}
        arrived = threading.Event()

        def keep(answer):
            answers[answer["id"]] = answer
            if len(answers) == 3:
                arrived.set()

        for method in ("ping", "roots/list", "elicitation/create"):
            self.waiting[method] = keep
            send({"jsonrpc": "2.0", "id": method, "method": method, "params": {}})
        arrived.wait(10)
        return {"content": [], "structuredContent": {"answers": answers}}

    def call_hold(self, arguments, params, send):
        self.held = os.open(arguments["pipe"], os.O_WRONLY)
        os.write(self.held, b"x")
        return {"content": []}

    def call_fork(self, arguments, params, send):
        subprocess.Popen([sys.executable, "-c", HOLD, arguments["pipe"]], stdin=subprocess.DEVNULL)
        return {"content": []}

    def call_swell(self, arguments, params, send):
        self.swollen = b"x" * arguments["size"]
        return {"content": []}

    def call_heard(self, arguments, params, send):
        return {"content": [], "structuredContent": {"notifications": self.notifications}}

    def call_strange_type(self, arguments, params, send):
        return {"resultType": "task", "content": []}

    def call_interactive(self, arguments, params, send):
        return {"resultType": "input_required", "inputRequests": {"a": {"method": "elicitation/create", "params": {}}}}
