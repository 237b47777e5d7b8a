"""What programs that are not at hand were seen to send: one request, with the picture of the job in their form."""

import json

import httpx2
from running import run

PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/{}:generateContent",
}


def image(case):
    return {"data": case["picture"], "mimeType": "image/png", "type": "image"}


def resource(case):
    held = {"uri": "file:///chart.png", "mimeType": "image/png", "blob": case["picture"]}
    return {"type": "resource", "resource": held}


def objects(case):
    """A result as LlamaIndex 0.14.25 and AG2 1.2.1 print it."""
    shown = f"ImageContent(type='image', data='{case['picture']}', mime_type='image/png', annotations=None, meta=None)"
    return f"meta=None content=[{shown}] structured_content=None is_error=False result_type='complete'"


SAID = {
    "AutoGen": lambda case: f"A chart.\n[Image: {case['picture']}]",
    "LlamaIndex": objects,
    "AG2, an error": lambda case: f"RuntimeError: {objects(case)}\n".replace("is_error=False", "is_error=True"),
    "CrewAI, MCPServerAdapter": lambda case: (
        f"type='image' data='{case['picture']}' mimeType='image/png' annotations=None meta=None"
    ),
    "Cline": lambda case: json.dumps({"content": [image(case)], "isError": False}),
    "Codex": lambda case: [{"type": "input_text", "text": json.dumps(resource(case))}],
    "OpenAI Agents": lambda case: json.dumps([{"type": "input_text", "text": json.dumps(resource(case))}]),
    "google-adk": lambda case: {"content": [{"type": "text", "text": "A chart."}, image(case)], "isError": False},
    "Gemini CLI, an error": lambda case: {"error": json.dumps({"content": [image(case)], "isError": True})},
}


def chat(prompt, said):
    call = {"id": "c0", "type": "function", "function": {"name": "snap", "arguments": "{}"}}
    called = {"role": "assistant", "content": None, "tool_calls": [call]}
    answered = {"role": "tool", "tool_call_id": "c0", "content": said}
    return {"messages": [{"role": "user", "content": prompt}, called, answered]}


def responses(prompt, said):
    call = {"type": "function_call", "call_id": "c0", "name": "snap", "arguments": "{}"}
    answered = {"type": "function_call_output", "call_id": "c0", "output": said}
    return {"input": [{"role": "user", "content": prompt}, call, answered]}


def messages(prompt, said):
    call = {"type": "tool_use", "id": "toolu_1", "name": "snap", "input": {}}
    answered = {"type": "tool_result", "tool_use_id": "toolu_1", "content": said}
    return {
        "max_tokens": 1_000,
        "tools": [{"name": "snap", "description": "", "input_schema": {"type": "object", "properties": {}}}],
        "messages": [
            {"role": "user", "content": prompt},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [answered]},
        ],
    }


def gemini(prompt, said):
    call = {"functionCall": {"id": "f0", "name": "snap", "args": {}}, "thoughtSignature": "c2lnbmVk"}
    answered = {"functionResponse": {"id": "f0", "name": "snap", "response": said}}
    return {
        "contents": [
            {"role": "user", "parts": [{"text": prompt}]},
            {"role": "model", "parts": [call]},
            {"role": "user", "parts": [answered]},
        ]
    }


WRITTEN = {"chat": chat, "responses": responses, "messages": messages, "gemini": gemini}


async def attempt(case):
    request = {"model": case["model"], **WRITTEN[case["loop"]](case["prompt"], SAID[case["form"]](case))}
    url = case["url"] + PATHS[case["loop"]].format(case["model"])
    async with httpx2.AsyncClient(timeout=30) as client:
        return words((await client.post(url, json=request)).raise_for_status().json())


def words(reply):
    """What the model says in a reply: the string in it that begins as a stand-in's words do."""
    if isinstance(reply, str):
        return reply if reply.startswith("I see ") else ""
    inside = reply.values() if isinstance(reply, dict) else reply if isinstance(reply, list) else ()
    return "".join(words(value) for value in inside)


run(attempt)
