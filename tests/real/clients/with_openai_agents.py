"""An agent of the OpenAI Agents SDK, whose model calls one tool: `with_openai_agents.py JOB`, see
`tests/real/conftest.py`."""

import json
import sys

import anyio
from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerSse, MCPServerStdio, MCPServerStreamableHttp
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

job = json.loads(sys.argv[1])
outcome = {"revision": None}


def server():
    patience = {"client_session_timeout_seconds": 60}
    match job["transport"]:
        case "stdio":
            command, *arguments = job["command"]
            return MCPServerStdio({"command": command, "args": arguments, "env": job["env"]}, **patience)
        case "http":
            return MCPServerStreamableHttp({"url": job["url"]}, **patience)
        case "sse":
            return MCPServerSse({"url": job["url"]}, **patience)


class CallsOneTool(Model):
    """Calls the tool; when its result is there, keeps what the model is given of it."""

    async def get_response(self, system_instructions, input, model_settings, tools, *rest, **more):
        outputs = [item for item in input if isinstance(item, dict) and item.get("type") == "function_call_output"]
        if not outputs:
            outcome["tools"] = [tool.name for tool in tools]
            arguments = json.dumps(job["arguments"])
            call = ResponseFunctionToolCall(type="function_call", call_id="call", name=job["tool"], arguments=arguments)
            return ModelResponse(output=[call], usage=Usage(), response_id=None)
        given = outputs[0]["output"]
        parts = given if isinstance(given, list) else [{"type": "input_text", "text": given}]
        outcome["texts"] = [part["text"] for part in parts if part["type"] == "input_text"]
        outcome["images"] = [
            part["image_url"].removeprefix("data:").split(";base64,") for part in parts if part["type"] == "input_image"
        ]
        text = ResponseOutputText(type="output_text", text="done", annotations=[])
        message = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *arguments, **more):
        raise AssertionError("nobody asked for a stream")


async def main():
    set_tracing_disabled(True)
    async with server() as gateway:
        agent = Agent("test", model=CallsOneTool(), mcp_servers=[gateway])
        await Runner.run(agent, "Show me the picture.")
    print(json.dumps(outcome))


anyio.run(main)
