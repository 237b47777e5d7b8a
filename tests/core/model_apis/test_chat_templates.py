"""Where images may stand is decided by a model's chat template: turns rendered as llama.cpp and vLLM render them.

The templates are written anew, with the rules of the real ones and nothing else:

- Ministral 3 and Devstral Small 2 (2512):
  https://huggingface.co/mistralai/Ministral-3-3B-Instruct-2512/blob/main/chat_template.jinja. Users and assistants take
  turns, calls and results of tools not counted; images in a user's message are `[IMG]`; the content of a tool's message
  is printed as a string. The words of the refusal are the template's (https://github.com/anomalyco/opencode/issues/5034).
- Qwen 3.5: https://huggingface.co/Qwen/Qwen3.5-35B-A3B/blob/main/chat_template.jinja. One macro writes the content of
  every role.
"""

import copy
import itertools
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest
from jinja2 import Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from gateway.content.shaping.turns import lower_turn_now
from gateway.testing.model_apis import refusals, seen
from gateway.testing.model_apis.histories import history
from tests.core.model_apis import cases

MADE = vars(cases)
text, image = MADE["text"], MADE["image"]

ALTERNATION = (
    "After the optional system message, conversation roles must alternate user and assistant roles except for tool "
    "calls and results."
)
MINISTRAL = """
{%- set spoken = namespace(count=0) -%}
{%- for message in messages if message.role == 'user' or (message.role == 'assistant' and not message.tool_calls) -%}
    {%- if (message.role == 'user') != (spoken.count is even) -%}{{ raise_exception(ALTERNATION) }}{%- endif -%}
    {%- set spoken.count = spoken.count + 1 -%}
{%- endfor -%}
{%- for message in messages -%}
    {%- if message.role == 'user' -%}
        [INST]
        {%- if message.content is string -%}{{ message.content }}
        {%- else -%}
            {%- for block in message.content -%}
                {%- if block.type == 'text' -%}{{ block.text }}
                {%- elif block.type in ['image', 'image_url'] -%}[IMG]
                {%- else -%}{{ raise_exception('Only text, image and image_url chunks are supported.') }}
                {%- endif -%}
            {%- endfor -%}
        {%- endif -%}
        [/INST]
    {%- elif message.role == 'assistant' -%}
        {{- message.content or '' -}}
        {%- for call in message.tool_calls or [] -%}
            [TOOL_CALLS]{{ call.function.name }}[ARGS]{{ call.function.arguments }}
        {%- endfor -%}
        </s>
    {%- elif message.role == 'tool' -%}[TOOL_RESULTS]{{ message.content | string }}[/TOOL_RESULTS]
    {%- endif -%}
{%- endfor -%}
"""
QWEN = """
{%- macro written(content) -%}
    {%- if content is string -%}{{ content }}
    {%- else -%}
        {%- for block in content -%}
            {%- if block.type == 'text' -%}{{ block.text }}{%- else -%}[IMG]{%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro -%}
{%- for message in messages -%}<{{ message.role }}>{{ written(message.content) }}</{{ message.role }}>{%- endfor -%}
"""


class Refused(Exception):
    """What a server answers in place of a reply."""


@cache
def compiled(template: str) -> Template:
    def raise_exception(words: str) -> None:
        raise Refused(words)

    environment = ImmutableSandboxedEnvironment()  # as transformers, and so vLLM, has it
    environment.globals |= {"raise_exception": raise_exception, "ALTERNATION": ALTERNATION}
    return environment.from_string(template)


def rendered(template: str, messages: Sequence[Any]) -> str:
    return compiled(template).render(messages=messages)


def by_llama_server(template: str, messages: Sequence[Any]) -> str:
    """Content that holds media is joined to one string with markers, whatever the role, before the template sees it.

    ggml-org/llama.cpp, common/chat.cpp, `common_chat_msg::to_json_oaicompat`: `concat_typed_text || contains_media()`.
    Where the prompt has not as many markers as there are images: "Failed to tokenize prompt" (mtmd_tokenize).
    """
    joined = copy.deepcopy(list(messages))
    for message in joined:
        if isinstance(message["content"], list):
            message["content"] = "\n".join(
                part["text"] if part["type"] == "text" else "[IMG]" for part in message["content"]
            )
    return counted(rendered(template, joined), messages, "Failed to tokenize prompt")


def by_vllm(template: str, messages: Sequence[Any]) -> str:
    """Parts go to the template as they are, an image without its address.

    Where the prompt has not as many placeholders as there are images: "Failed to apply prompt replacement"
    (https://github.com/vllm-project/vllm/issues/30963).
    """
    bare = copy.deepcopy(list(messages))
    for message in bare:
        if isinstance(message["content"], list):
            message["content"] = [part if part["type"] == "text" else {"type": "image"} for part in message["content"]]
    return counted(rendered(template, bare), messages, "Failed to apply prompt replacement for mm_items['image'][0]")


def counted(prompt: str, messages: Sequence[Any], words: str) -> str:
    if prompt.count("[IMG]") != str(messages).count("'image_url': {"):
        raise Refused(words)
    return prompt


SERVERS: dict[str, Callable[[str, Sequence[Any]], str]] = {"llama_cpp": by_llama_server, "vllm": by_vllm}
MODELS = {
    "mistralai/Ministral-3-14B-Instruct-2512": MINISTRAL,
    "mistralai/Devstral-Small-2-24B-Instruct-2512": MINISTRAL,
    "Qwen/Qwen3.5-35B-A3B": QWEN,
}
CALLS = [
    {"id": "call00000", "name": "draw", "result": {"content": [text("before"), image(), text("behind")]}},
    {"id": "call00001", "name": "say", "result": {"content": [text("done")]}},
]


def asked(target: str, model: str, place: str | None = None) -> dict[str, Any]:
    turn = lower_turn_now(CALLS, target, model=model, tool_images=place)  # pyright: ignore[reportArgumentType]
    return {**history(target, CALLS, turn.messages), "model": model}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("server", SERVERS)
def test_the_turn_of_a_known_model_is_rendered_with_its_image(server: str, model: str) -> None:
    request = asked(server, model)
    assert SERVERS[server](MODELS[model], request["messages"]).count("[IMG]") == 1
    assert refusals(server, request) == ()
    assert len(seen(server, request)) == 1


@pytest.mark.parametrize("server", SERVERS)
def test_an_image_in_a_users_message_after_the_results_is_refused_by_ministral(server: str) -> None:
    request = asked(server, "ministral-3-8b-instruct-2512", "follow_up")
    with pytest.raises(Refused, match="conversation roles must alternate user and assistant"):
        SERVERS[server](MINISTRAL, request["messages"])
    assert refusals(server, request) != ()


def test_in_the_tools_message_it_stands_in_its_place_with_llama_server() -> None:
    prompt = by_llama_server(MINISTRAL, asked("llama_cpp", "ministral-3-8b-instruct-2512")["messages"])
    assert "[TOOL_RESULTS]before\n[IMG]\nbehind[/TOOL_RESULTS][TOOL_RESULTS]done[/TOOL_RESULTS]" in prompt


def test_in_the_tools_message_it_is_printed_as_python_by_vllm_and_so_it_stands_behind_a_reply() -> None:
    with pytest.raises(Refused, match="Failed to apply prompt replacement"):
        by_vllm(MINISTRAL, asked("vllm", "ministral-3-8b-instruct-2512", "in_tool")["messages"])
    request = asked("vllm", "ministral-3-8b-instruct-2512")
    assert [message["role"] for message in request["messages"][2:]] == ["tool", "tool", "assistant", "user"]
    prompt = by_vllm(MINISTRAL, request["messages"])
    assert prompt.endswith("</s>[INST][image 1, from the result of draw, call call00000][IMG][/INST]")


@pytest.mark.parametrize("place", ["in_tool", "follow_up", "after_reply"])
@pytest.mark.parametrize("server", SERVERS)
def test_qwen_takes_it_anywhere(server: str, place: str) -> None:
    assert "[IMG]" in SERVERS[server](QWEN, asked(server, "qwen3.5-9b", place)["messages"])


def spoken(roles: Sequence[str]) -> list[dict[str, Any]]:
    """Messages of these roles: `calls` is an assistant's message with a call."""
    call = {"id": "call00000", "type": "function", "function": {"name": "draw", "arguments": "{}"}}
    made: dict[str, dict[str, Any]] = {
        "user": {"role": "user", "content": "x"},
        "assistant": {"role": "assistant", "content": "x"},
        "calls": {"role": "assistant", "content": "", "tool_calls": [call]},
        "tool": {"role": "tool", "tool_call_id": "call00000", "content": "x"},
    }
    return [made[role] for role in roles]


@pytest.mark.parametrize("server", SERVERS)
def test_in_a_whole_history_every_image_is_rendered(server: str) -> None:
    model = "ministral-3-8b-instruct-2512"
    seen_once = asked(server, model)["messages"][1:]  # the calls, their results, and what follows
    for steps in itertools.product(["talk", "call"], repeat=4):
        messages = spoken(["user"])
        for step in steps:
            messages += seen_once if step == "call" else spoken(["assistant", "user"])
        assert SERVERS[server](MINISTRAL, messages).count("[IMG]") == steps.count("call")
        assert refusals(server, {"model": model, "messages": messages}) == ()


WHOLE = {"user": ["user"], "assistant": ["assistant"], "calls": ["calls", "tool"]}


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_the_stand_in_refuses_what_the_template_refuses(length: int) -> None:
    for steps in itertools.product(WHOLE, repeat=length):
        messages = spoken([role for step in steps for role in WHOLE[step]])
        told = refusals("llama_cpp", {"model": "Ministral-3-3B-Instruct-2512-GGUF", "messages": messages})
        assert told == why_refused(messages), steps


def why_refused(messages: Sequence[Any]) -> tuple[str, ...]:
    try:
        by_llama_server(MINISTRAL, messages)
    except Refused as refused:
        return (str(refused),)
    return ()
