"""What the upstream offers: the tools, prompts and resources that the conformance suite asks for by name.

Names and contents: the descriptions of the scenarios of npm @modelcontextprotocol/conformance 0.2.0-alpha.12.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from dataclasses import field as default
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.subscriptions import PromptsListChanged, ServerEvent, ToolsListChanged

from tests.conformance.asking import Call, Failed, form, sampling
from tests.conformance.asking import field as filled

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="
STEP = 0.05
"""Seconds between the messages of a tool that works: the suite asks for them."""

TEXT = {"type": "string"}
NAME = {"name": TEXT}
Change = Callable[[ServerEvent], Awaitable[None]]
"""Tell every host, of whichever era, that a list has changed."""


@dataclass(frozen=True)
class Offer:
    """A tool or a prompt: how it is listed, and what it does."""

    about: str
    run: Callable[[Call, "Lists"], Awaitable[Any]]
    schema: Mapping[str, Any] = default(default_factory=lambda: {"type": "object"})


@dataclass
class Lists:
    """What is listed at the moment, and how a change is told."""

    announce: Change
    tools: dict[str, Offer] = default(default_factory=lambda: dict(TOOLS))
    prompts: dict[str, Offer] = default(default_factory=lambda: dict(PROMPTS))


TOOLS: dict[str, Offer] = {}
PROMPTS: dict[str, Offer] = {}


def tool(about: str, schema: Mapping[str, Any] | None = None, **properties: Any) -> Callable[[Any], Any]:
    """Offer a function as a tool of its own name."""

    def offer(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        TOOLS[function.__name__] = Offer(about, function, schema or {"type": "object", "properties": properties})
        return function

    return offer


def prompt(about: str, *arguments: str) -> Callable[[Any], Any]:
    """Offer a function as a prompt of its own name, with these arguments, all required."""

    def offer(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        PROMPTS[function.__name__] = Offer(about, function, {"properties": dict.fromkeys(arguments, TEXT)})
        return function

    return offer


def text(said: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": said}


def picture() -> dict[str, Any]:
    """An image block."""
    return {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def embedded(uri: str, said: str, media_type: str = "text/plain") -> dict[str, Any]:
    """An embedded resource with a text."""
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "text": said}}


# ------------------------------------------------------------------------------------------------- tools that answer


@tool("One text.")
async def test_simple_text(call: Call, lists: Lists) -> Any:
    return [text("This is a simple text response for testing.")]


@tool("One image.")
async def test_image_content(call: Call, lists: Lists) -> Any:
    return [picture()]


@tool("One sound.")
async def test_audio_content(call: Call, lists: Lists) -> Any:
    return [{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}]


@tool("One embedded resource.")
async def test_embedded_resource(call: Call, lists: Lists) -> Any:
    return [embedded("test://embedded-resource", "This is an embedded resource content.")]


@tool("A text, an image and an embedded resource.")
async def test_multiple_content_types(call: Call, lists: Lists) -> Any:
    data = embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return [text("Multiple content types test:"), picture(), data]


@tool("A tool that always fails.")
async def test_error_handling(call: Call, lists: Lists) -> Any:
    raise Failed("This tool intentionally returns an error for testing")


@tool("A tool whose argument is also sent as a header.", region={"type": "string", "x-mcp-header": "Region"})
async def test_x_mcp_header(call: Call, lists: Lists) -> Any:
    return [text(f"region: {call.arguments.get('region')}")]


@tool(
    "A tool whose schema uses what JSON Schema 2020-12 has.",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": TEXT, "city": TEXT},
            }
        },
        "properties": {
            "name": TEXT,
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": TEXT,
            "email": TEXT,
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
async def json_schema_2020_12_tool(call: Call, lists: Lists) -> Any:
    return [text("called")]


# -------------------------------------------------------------------------------------------- tools that report work


@tool("Three log messages while it works.")
async def test_tool_with_logging(call: Call, lists: Lists) -> Any:
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await log(call, said)
        await anyio.sleep(STEP)
    return [text("logged three times")]


@tool("A log message, for hosts that have asked for none.")
async def test_logging_tool(call: Call, lists: Lists) -> Any:
    await log(call, "not for everybody")
    return [text("logged")]


@tool("Progress in three steps.")
async def test_tool_with_progress(call: Call, lists: Lists) -> Any:
    for done in (0, 50, 100):
        await call.context.session.report_progress(done, 100, f"{done} of 100")
        await anyio.sleep(STEP)
    return [text("done")]


@tool("Closes the stream of its call before it answers; the host comes back for the rest.")
async def test_reconnection(call: Call, lists: Lists) -> Any:
    await log(call, "before the stream is closed")
    if call.context.close_sse_stream is not None:
        await call.context.close_sse_stream()
    await anyio.sleep(4 * STEP)
    await log(call, "after the stream was closed")
    return [text("reconnected")]


async def log(call: Call, said: str) -> None:
    """Log on the call's own stream."""
    await call.context.session.send_log_message("info", said, related_request_id=call.context.request_id)


# ---------------------------------------------------------------------------------------------- tools that change


@tool("Lists a tool more, or one less.")
async def test_trigger_tool_change(call: Call, lists: Lists) -> Any:
    toggle(lists.tools, "test_dynamic_tool", Offer("A tool that comes and goes.", test_simple_text))
    await lists.announce(ToolsListChanged())
    return [text("changed")]


@tool("Lists a prompt more, or one less.")
async def test_trigger_prompt_change(call: Call, lists: Lists) -> Any:
    toggle(lists.prompts, "test_dynamic_prompt", Offer("A prompt that comes and goes.", test_simple_prompt))
    await lists.announce(PromptsListChanged())
    return [text("changed")]


def toggle(offers: dict[str, Offer], name: str, offer: Offer) -> None:
    """Take it away where it is, else add it."""
    if offers.pop(name, None) is None:
        offers[name] = offer


# ------------------------------------------------------------------------------------------------- tools that ask


@tool("Asks the host's model.", prompt=TEXT)
async def test_sampling(call: Call, lists: Lists) -> Any:
    said = (await call.ask({"answer": sampling(call.arguments["prompt"])}))["answer"]
    return [text(f"LLM response: {spoken(said)}")]


@tool("Asks the user.", message=TEXT)
async def test_elicitation(call: Call, lists: Lists) -> Any:
    fields = {"username": {**TEXT, "description": "User's response"}, "email": {**TEXT, "description": "An address"}}
    answer = (await call.ask({"user": form(call.arguments["message"], fields)}))["user"]
    return [text(f"User response: {answer.model_dump_json(include={'action', 'content'})}")]


@tool("Asks the user with a default for each primitive type.")
async def test_elicitation_sep1034_defaults(call: Call, lists: Lists) -> Any:
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    answer = (await call.ask({"user": form("Review these values", fields, required=False)}))["user"]
    return [text(f"Elicitation completed: {answer.model_dump_json(include={'action', 'content'})}")]


@tool("Asks the user to choose, in every form that a choice has.")
async def test_elicitation_sep1330_enums(call: Call, lists: Lists) -> Any:
    plain, titled = (
        ["option1", "option2", "option3"],
        [{"const": f"value{n}", "title": f"Value {n}"} for n in (1, 2, 3)],
    )
    fields = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": plain, "enumNames": ["One", "Two", "Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    answer = (await call.ask({"user": form("Choose", fields, required=False)}))["user"]
    return [text(f"Elicitation completed: {answer.model_dump_json(include={'action', 'content'})}")]


@tool("Works, then asks the user.")
async def test_streaming_elicitation(call: Call, lists: Lists) -> Any:
    await call.context.session.report_progress(1, 2, "about to ask")
    answer = (await call.ask({"user_name": form("What is your name?", NAME)}))["user_name"]
    return [text(f"Hello, {filled(answer, 'name')}!")]


@tool("Needs a host that samples.")
async def test_missing_capability(call: Call, lists: Lists) -> Any:
    call.require("sampling")
    return [text("the client samples")]


@tool("Asks the user one question.")
async def test_input_required_result_elicitation(call: Call, lists: Lists) -> Any:
    answer = (await call.ask({"user_name": form("What is your name?", NAME)}))["user_name"]
    return [text(f"Hello, {filled(answer, 'name')}!")]


@tool("Asks the host's model one question.")
async def test_input_required_result_sampling(call: Call, lists: Lists) -> Any:
    answers = await call.ask({"capital_question": sampling("What is the capital of France?")})
    return [text(f"Model said: {spoken(answers['capital_question'])}")]


@tool("Asks for the host's roots.")
async def test_input_required_result_list_roots(call: Call, lists: Lists) -> Any:
    answer = (await call.ask({"client_roots": types.ListRootsRequest()}))["client_roots"]
    assert isinstance(answer, types.ListRootsResult)
    return [text(f"{len(answer.roots)} roots: {', '.join(str(root.uri) for root in answer.roots)}")]


@tool("Asks, and has to be given its state back.")
async def test_input_required_result_request_state(call: Call, lists: Lists) -> Any:
    await confirmed(call)
    return [text("state-ok" if call.request_state is not None or not call.modern else "no state")]


@tool("Asks, and notices a state that is not its own.")
async def test_input_required_result_tampered_state(call: Call, lists: Lists) -> Any:
    await confirmed(call)
    return [text("state-ok")]


async def confirmed(call: Call) -> None:
    """Ask for a confirmation, with a state."""
    await call.ask({"confirm": form("Please confirm", {"ok": {"type": "boolean"}})}, with_state=True)


@tool("Asks the user, the model and for the roots at once.")
async def test_input_required_result_multiple_inputs(call: Call, lists: Lists) -> Any:
    answers = await call.ask(
        {
            "user_name": form("What is your name?", NAME),
            "greeting": sampling("Generate a greeting", 50),
            "client_roots": types.ListRootsRequest(),
        },
        with_state=True,
    )
    listed = answers["client_roots"]
    assert isinstance(listed, types.ListRootsResult)
    roots = len(listed.roots)
    return [text(f"{spoken(answers['greeting'])}, {filled(answers['user_name'], 'name')}, with {roots} roots")]


@tool("Asks twice, the second time with the first answer in mind.")
async def test_input_required_result_multi_round(call: Call, lists: Lists) -> Any:
    first = await call.ask({"step1": form("Step 1: What is your name?", NAME)}, with_state=True)
    second = await call.ask({"step2": form("Step 2: What is your favorite color?", {"color": TEXT})})
    return [text(f"{filled(first['step1'], 'name')} likes {filled(second['step2'], 'color')}")]


@tool("Asks only what the host has declared.")
async def test_input_required_result_capabilities(call: Call, lists: Lists) -> Any:
    questions = {"sampling": sampling("Say hello", 50), "elicitation": form("What is your name?", NAME)}
    answers = await call.ask({key: question for key, question in questions.items() if call.declared(key)})
    return [text(f"answered: {', '.join(answers) or 'nothing'}")]


def spoken(answer: Any) -> str:
    """What the host's model said."""
    return answer.content.text if answer.content.type == "text" else answer.content.type


# ----------------------------------------------------------------------------------------------------------- prompts


def said(*blocks: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each block as a message of the user."""
    return [{"role": "user", "content": block} for block in blocks]


@prompt("One text.")
async def test_simple_prompt(call: Call, lists: Lists) -> Any:
    return said(text("This is a simple prompt for testing."))


@prompt("A text with two arguments.", "arg1", "arg2")
async def test_prompt_with_arguments(call: Call, lists: Lists) -> Any:
    arguments = ", ".join(f"{name}='{call.arguments[name]}'" for name in ("arg1", "arg2"))
    return said(text(f"Prompt with arguments: {arguments}"))


@prompt("An embedded resource.", "resourceUri")
async def test_prompt_with_embedded_resource(call: Call, lists: Lists) -> Any:
    resource = embedded(call.arguments["resourceUri"], "Embedded resource content for testing.")
    return said(resource, text("Please process the embedded resource above."))


@prompt("An image.")
async def test_prompt_with_image(call: Call, lists: Lists) -> Any:
    return said(picture(), text("Please analyze the image above."))


@prompt("Asks the user first.")
async def test_input_required_result_prompt(call: Call, lists: Lists) -> Any:
    question = form("What context should the prompt use?", {"context": TEXT})
    answer = (await call.ask({"user_context": question}))["user_context"]
    return said(text(f"Use the following context: {filled(answer, 'context')}"))


# --------------------------------------------------------------------------------------------------------- resources

RESOURCES: dict[str, dict[str, Any]] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PIXEL},
    "test://watched-resource": {"mimeType": "text/plain", "text": "This resource can be watched."},
}
TEMPLATE = "test://template/{id}/data"


def contents(uri: str) -> dict[str, Any] | None:
    """What is read at a uri; None where nothing is."""
    if uri in RESOURCES:
        return {"uri": uri, **RESOURCES[uri]}
    before, after = TEMPLATE.split("{id}")
    if not (uri.startswith(before) and uri.endswith(after) and len(uri) > len(before + after)):
        return None
    wanted = uri.removeprefix(before).removesuffix(after)
    data = {"id": wanted, "templateTest": True, "data": f"Data for ID: {wanted}"}
    return {"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}
