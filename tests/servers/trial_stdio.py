"""An MCP server on stdio from the standard library alone, for trying: every kind of schema, questions and progress.

`python trial_stdio.py [LOG]`: each message that arrives is a line in the file LOG.
"""

import json
import select
import sys

SHAPES = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 40, "description": "What it is called."},
        "text": {"type": "string", "description": "Several lines, if need be."},
        "day": {"type": "string", "format": "date"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
        "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "loud": {"type": "boolean", "default": False},
        "size": {"enum": ["small", "large"], "default": "small"},
        "version": {"const": 2},
        "place": {
            "type": "object",
            "description": "Where it is.",
            "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
            "required": ["x", "y"],
        },
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Any number of words."},
        "points": {"type": "array", "items": {"$ref": "#/$defs/point"}},
        "shape": {
            "oneOf": [
                {
                    "title": "Circle",
                    "type": "object",
                    "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
                    "required": ["kind", "radius"],
                },
                {
                    "title": "Box",
                    "type": "object",
                    "properties": {"kind": {"const": "box"}, "sides": {"type": "array", "items": {"type": "integer"}}},
                    "required": ["kind"],
                },
            ]
        },
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "tree": {"$ref": "#/$defs/node"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "anything": {},
    },
    "required": ["title", "version"],
    "$defs": {
        "point": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "at": {"type": "array", "items": {"type": "integer"}}},
            "required": ["name"],
        },
        "node": {
            "type": "object",
            "properties": {"value": {"type": "string"}, "next": {"$ref": "#/$defs/node"}},
        },
    },
}
HOSTILE = {
    "type": "object",
    "properties": {
        "<script>alert(1)</script>": {"type": "string", "description": "<img src=x onerror=alert(1)>"},
        '"><b>': {"type": "string", "default": '"><script>alert(2)</script>', "title": "\u001b[31mred"},
        "half \ud800": {"enum": ["\ud800", "</textarea><script>alert(3)</script>"]},
        "big": {"type": "string", "default": "x" * 300_000},
    },
}
PHOTO = {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/*"}
TOOLS = [
    {
        "name": "shapes",
        "title": "Every kind of schema",
        "description": "Returns its arguments as they came.",
        "inputSchema": SHAPES,
        "annotations": {"readOnlyHint": True, "idempotentHint": True},
    },
    {"name": "hostile", "description": "<script>alert(0)</script>\u001b[2J", "inputSchema": HOSTILE},
    {"name": "slow", "description": "Never ends by itself.", "inputSchema": {"type": "object"}},
    {"name": "page", "description": "Shows a page that asks for a name.", "inputSchema": {"type": "object"}},
    {"name": "ask", "description": "Asks for a name.", "inputSchema": {"type": "object"}},
    {"name": "visit", "description": "Asks to open a page.", "inputSchema": {"type": "object"}},
    {"name": "sample", "description": "Asks a model.", "inputSchema": {"type": "object"}},
    {"name": "fail", "description": "Fails.", "inputSchema": {"type": "object"}},
    {
        "name": "look",
        "description": "Takes a picture.",
        "inputSchema": {"type": "object", "properties": {"photo": PHOTO}},
    },
]
PROMPTS = [
    {
        "name": "greet",
        "description": "Greets somebody.",
        "arguments": [{"name": "who", "required": True}, {"name": "how", "description": "In which way."}],
    }
]
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "age": {"type": "integer"},
        "colour": {"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}]},
    },
    "required": ["name"],
}
PAGE = """<!doctype html><title>Ask</title><p>A page of mcp-ui.</p><button>Ask for a name</button><pre></pre><script>
const tell = (message) => parent.postMessage(message, "*");
addEventListener("message", ({ data }) => {
  if (data.type === "ui-message-response" && data.messageId === "one") {
    document.querySelector("pre").textContent = JSON.stringify(data.payload);
  }
});
document.querySelector("button").onclick = () => {
  tell({ type: "tool", messageId: "one", payload: { toolName: "ask", params: {} } });
};
tell({ type: "ui-size-change", payload: { height: 321 } });
tell({ type: "constructor", payload: {} });
tell(undefined);
fetch("https://example.org/").catch(() => tell({ type: "notify", payload: { message: "it is offline" } }));
</script>"""
LOG = open(sys.argv[1], "a", encoding="utf-8") if len(sys.argv) > 1 else None  # noqa: SIM115
asked = 0


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    if LOG is not None:
        LOG.write(line)
        LOG.flush()
    return json.loads(line)


def question(method, params):
    global asked
    asked += 1
    send({"id": f"q{asked}", "method": method, "params": params})
    while True:
        message = receive()
        if message.get("id") == f"q{asked}" and "method" not in message:
            return message.get("result") or message.get("error")
        handle(message)


def slow(number, params):
    token = params.get("_meta", {}).get("progressToken")
    for step in range(1, 10_000):
        if token is not None:
            about = {"progressToken": token, "progress": min(step, 90), "total": 100, "message": f"step {step}"}
            send({"method": "notifications/progress", "params": about})
        send({"method": "notifications/message", "params": {"level": "info", "data": f"line {step}"}})
        if select.select([sys.stdin], [], [], 0.2)[0]:
            message = receive()
            if message.get("method") == "notifications/cancelled":
                return None
            handle(message)
    return []


def call(number, params):
    name, arguments = params["name"], params.get("arguments") or {}
    match name:
        case "slow":
            return slow(number, params)
        case "ask":
            answer = question("elicitation/create", {"message": "Who are you?", "requestedSchema": PERSON})
        case "visit":
            about = {
                "mode": "url",
                "message": "Log in there.",
                "url": "https://example.org/login",
                "elicitationId": "e",
            }
            answer = question("elicitation/create", about)
        case "sample":
            said = {"role": "user", "content": {"type": "text", "text": "What is <b>six</b> times seven?"}}
            answer = question(
                "sampling/createMessage", {"messages": [said], "maxTokens": 50, "systemPrompt": "Be brief."}
            )
        case "page":
            page = {"uri": "ui://trial/ask", "mimeType": "text/html", "text": PAGE}
            return {"content": [{"type": "resource", "resource": page}]}
        case "fail":
            return {"content": [{"type": "text", "text": "it broke"}], "isError": True}
        case _:
            answer = arguments
    return {"content": [{"type": "text", "text": json.dumps(answer)}]}


def answer_to(message):
    method, params = message["method"], message.get("params") or {}
    match method:
        case "initialize":
            capabilities = {"tools": {}, "prompts": {}, "resources": {}, "logging": {}}
            about = {"name": "trial", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": about}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return call(message["id"], params)
        case "prompts/list":
            return {"prompts": PROMPTS}
        case "prompts/get":
            words = f"Greet {params.get('arguments', {}).get('who')}!"
            return {"messages": [{"role": "user", "content": {"type": "text", "text": words}}]}
        case "resources/list":
            return {"resources": [{"uri": "note://one", "name": "one", "mimeType": "text/plain"}]}
        case "resources/templates/list":
            return {"resourceTemplates": [{"uriTemplate": "note://{name}{?part}", "name": "notes"}]}
        case "resources/read":
            return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": f"read {params['uri']}"}]}
        case _:
            return {}


def handle(message):
    if "method" not in message or "id" not in message:
        return
    result = answer_to(message)
    if result is not None:
        send({"id": message["id"], "result": result})


while True:
    handle(receive())
