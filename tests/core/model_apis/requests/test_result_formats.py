"""Every form in which clients put media into tool results, in every dialect: the model sees it after the repair."""

import base64
import io
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from gateway.config.builtin_profiles import model_profiles
from gateway.config.model_proxy_settings import HistorySettings
from gateway.config.store_settings import StoreSettings
from gateway.content.shaping.repair_request import RepairedRequest, Repairer
from gateway.content.store import MemoryStore
from gateway.core.model_apis.registry import REQUEST_APIS
from gateway.core.profiles.model_profiles import choose_model_profile
from gateway.errors import MediaError

pytestmark = pytest.mark.anyio

Json = Any


def picture(colour: str, size: tuple[int, int] = (9, 7)) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def picture_of_noise() -> str:
    """A picture whose base64 is another one in the URL-safe alphabet."""
    buffer = io.BytesIO()
    Image.frombytes("RGB", (9, 7), random.Random(1).randbytes(9 * 7 * 3)).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


RED, BLUE = picture("red"), picture("blue")
PDF = base64.b64encode(b"%PDF-1.4\n" + bytes(100)).decode()
WORDS = {"type": "text", "text": "a chart"}
MCP_IMAGE = {"type": "image", "data": RED, "mimeType": "image/png"}
RESULT = {"content": [WORDS, MCP_IMAGE], "isError": False}
BLOB = {"type": "resource", "resource": {"uri": "shots://1.png", "blob": RED, "mimeType": "image/png"}}
AI_SDK = [WORDS, {"type": "file", "mediaType": "image/png", "data": {"type": "data", "data": RED}}]

TEXTS: dict[str, str] = {
    "mcp_blocks": json.dumps([WORDS, MCP_IMAGE]),
    "ai_sdk_file_parts": json.dumps(AI_SDK),
    "ai_sdk_older_file_part": json.dumps([WORDS, {"type": "media", "mediaType": "image/png", "data": RED}]),
    "data_uri": f"see data:image/png;base64,{RED} here",
    "markdown": f"see ![a chart](data:image/png;base64,{RED}) here",
    "call_tool_result": json.dumps(RESULT),
    "call_tool_result_in_result": json.dumps({"result": RESULT}),
    "call_tool_result_as_string_in_result": json.dumps({"result": json.dumps(RESULT)}),
    "embedded_resource": json.dumps(BLOB),
    "embedded_resource_in_list": json.dumps([WORDS, BLOB]),
    "only_base64": RED,
    "printed_object": f"[TextContent(text='a chart'), ImageContent(type='image', data='{RED}', mimeType='image/png')]",
    "text_around_json": f"Tool 'give' reported an error with response: {json.dumps([MCP_IMAGE])}",
    "json_of_no_known_form": json.dumps({"rows": [{"plot": RED, "name": "x"}]}),
    "json_in_json": json.dumps({"rows": json.dumps({"plot": {"image/png": RED}})}),
}
PARTS: dict[str, list[Json]] = {
    "mcp_image_block": [WORDS, MCP_IMAGE],
    "mislabelled_mcp_block": [{"type": "image", "data": RED, "mimeType": "application/octet-stream"}],
    "anthropic_image_block": [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": RED}},
    ],
    "image_url_part": [WORDS, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{RED}"}}],
    "image_url_string": [{"type": "image_url", "image_url": f"data:image/png;base64,{RED}"}],
    "input_image_part": [{"type": "input_image", "image_url": f"data:image/png;base64,{RED}", "detail": "auto"}],
    "langchain_block": [{"type": "image", "base64": RED, "mime_type": "image/png", "id": "lc_1"}],
    "langchain_older_block": [{"type": "image", "source_type": "base64", "data": RED, "mime_type": "image/png"}],
    "ai_sdk_file_part": AI_SDK,
    "embedded_resource": [BLOB],
    "gemini_inline_data": [{"inlineData": {"mimeType": "image/png", "data": RED}}],
    "json_in_a_text_part": [{"type": "text", "text": TEXTS["mcp_blocks"]}],
    "data_uri_in_a_text_part": [{"type": "text", "text": TEXTS["data_uri"]}],
}


class Api(NamedTuple):
    """How a dialect's request is made with one tool's result in it."""

    dialect: str
    target: str
    model: str
    request: Callable[[Json], dict[str, Any]]


def chat(content: Json) -> dict[str, Any]:
    called = {"id": "c0", "type": "function", "function": {"name": "snap", "arguments": "{}"}}
    return {
        "model": "m",
        "x_unknown": {"kept": [1.50, "é"]},
        "messages": [
            {"role": "user", "content": "draw"},
            {"role": "assistant", "content": None, "tool_calls": [called], "reasoning": "hm"},
            {"role": "tool", "tool_call_id": "c0", "content": content, "x": 1},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": [{"type": "text", "text": "again"}]},
        ],
    }


def responses(content: Json) -> dict[str, Any]:
    return {
        "model": "m",
        "input": [
            {"role": "user", "content": "draw"},
            {"type": "function_call", "call_id": "c0", "name": "snap", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c0", "output": content, "status": "completed"},
        ],
    }


def messages(content: Json) -> dict[str, Any]:
    result = {"type": "tool_result", "tool_use_id": "c0", "content": content, "cache_control": {"type": "ephemeral"}}
    return {
        "model": "m",
        "messages": [
            {"role": "user", "content": "draw"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c0", "name": "snap", "input": {}}]},
            {"role": "user", "content": [result, {"type": "text", "text": "and?"}]},
        ],
    }


def contents(content: Json) -> dict[str, Any]:
    response = content if isinstance(content, dict) else {"output": content}
    return {
        "contents": [
            {"role": "model", "parts": [{"functionCall": {"name": "snap", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "snap", "response": response}, "x": 1}]},
        ]
    }


def ollama(content: Json) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "tool", "tool_name": "snap", "content": content}], "stream": False}


APIS = {
    "openai_chat": Api("openai_chat", "openai_chat", "gpt-5", chat),
    "openai_compat": Api("openai_chat", "openai_compat", "m", chat),
    "llama_cpp": Api("openai_chat", "llama_cpp", "m", chat),
    "vllm": Api("openai_chat", "vllm", "m", chat),
    "mistral": Api("openai_chat", "mistral", "m", chat),
    "openai_responses": Api("openai_responses", "openai_responses", "gpt-5", responses),
    "anthropic_messages": Api("anthropic_messages", "anthropic_messages", "claude", messages),
    "gemini": Api("gemini", "gemini", "gemini-3-pro", contents),
    "gemini_2_5": Api("gemini", "gemini", "gemini-2.5-pro", contents),
    "ollama": Api("ollama", "ollama", "llama", ollama),
}
every_api = pytest.mark.parametrize("api", APIS.values(), ids=APIS)


class NoWorkers:
    """For media that fits as it is."""

    async def run(self, effect: Any) -> Any:
        raise MediaError("there are no workers here")


def repairer(history: HistorySettings | None = None) -> Repairer:
    store = MemoryStore(StoreSettings(), key=bytes(32))
    return Repairer(store, NoWorkers(), history or HistorySettings())


async def repaired(api: Api, request: Json, by: Repairer | None = None) -> RepairedRequest:
    profile = choose_model_profile(model_profiles(), api.target, model=api.model)
    return await (by or repairer()).repair(json.dumps(request).encode(), api.dialect, lambda _: profile)


def native_images(value: Json) -> Iterator[str]:
    """The base64 of every image in a form that some model API has for it."""
    if isinstance(value, list):
        for item in value:
            yield from native_images(item)
    elif isinstance(value, dict):
        match value:
            case {"type": "image_url", "image_url": {"url": str(url)}} | {"type": "input_image", "image_url": str(url)}:
                yield url.partition(",")[2]
            case {"type": "image", "source": {"data": str(data)}} | {"inlineData": {"data": str(data)}}:
                yield data
            case {"images": [*images]}:
                yield from images
            case _:
                for item in value.values():
                    yield from native_images(item)


async def assert_seen(api: Api, content: Json) -> None:
    before = api.request(content)
    first = await repaired(api, before)
    after = json.loads(first.body)
    assert list(native_images(after)) == [RED], first.body
    assert len(first.changes) == 1 or api.dialect == "openai_chat"
    without = re.sub(re.escape(RED), "", first.body.decode(), count=1)
    assert RED[:40] not in without, "base64 is still there as text"
    again = await repaired(api, after)
    assert json.loads(again.body) == after
    assert not again.changes


@every_api
@pytest.mark.parametrize("form", TEXTS)
async def test_an_image_in_a_text_is_seen_once(api: Api, form: str) -> None:
    await assert_seen(api, TEXTS[form])


@pytest.mark.parametrize("name", [name for name in APIS if not name.startswith(("gemini", "ollama"))])
@pytest.mark.parametrize("form", PARTS)
async def test_an_image_in_a_part_is_seen_once(name: str, form: str) -> None:
    api = APIS[name]
    before = api.request(PARTS[form])
    first = await repaired(api, before)
    assert list(native_images(json.loads(first.body))) == [RED]
    again = await repaired(api, json.loads(first.body))
    assert not again.changes


@pytest.mark.parametrize("form", [TEXTS["mcp_blocks"], RESULT, {"result": RESULT}, {"content": [MCP_IMAGE]}, BLOB])
@pytest.mark.parametrize("model", ["gemini-3-pro", "gemini-2.5-flash"])
async def test_google_adks_dumps_in_a_response_are_seen(form: Json, model: str) -> None:
    await assert_seen(APIS["gemini"]._replace(model=model), form)


@pytest.mark.parametrize("spelling", ["functionResponse", "function_response"])
async def test_a_response_error_with_base64_stays_an_error_and_shows_the_image(spelling: str) -> None:
    error = {"error": TEXTS["text_around_json"]}
    request = {"contents": [{"role": "user", "parts": [{spelling: {"id": "f", "name": "give", "response": error}}]}]}
    first = await repaired(APIS["gemini"], request)
    part = json.loads(first.body)["contents"][0]["parts"][0][spelling]
    assert part["response"].keys() == {"error"}
    assert (part["id"], part["name"]) == ("f", "give")
    assert list(native_images(part)) == [RED]


@every_api
@pytest.mark.parametrize("content", ["plain words", json.dumps({"a": [1, 2]}), json.dumps([WORDS]), "", "A" * 5_000])
async def test_a_request_without_tool_media_keeps_its_very_bytes(api: Api, content: str) -> None:
    body = json.dumps(api.request(content), indent=3).encode() + b"\n"
    profile = choose_model_profile(model_profiles(), api.target, model=api.model)
    answer = await repairer().repair(body, api.dialect, lambda _: profile)
    assert answer.body is body


@every_api
async def test_media_of_users_is_not_touched(api: Api) -> None:
    request = api.request("words")
    key = next(key for key in ("messages", "input", "contents") if key in request)
    request[key].append({"role": "user", "content": [MCP_IMAGE], "parts": [{"text": RED}]})
    answer = await repaired(api, request)
    assert not answer.changes


@every_api
async def test_equal_history_gives_equal_bytes_and_what_is_before_it_stays(api: Api) -> None:
    request = api.request(TEXTS["call_tool_result"])
    one, two = await repaired(api, request), await repaired(api, request)
    assert one.body == two.body
    key = next(key for key in ("messages", "input", "contents") if key in request)
    longer = {**request, key: [*request[key], *api.request(json.dumps([{**MCP_IMAGE, "data": BLUE}]))[key]]}
    before, after = [json.loads((await repaired(api, each)).body)[key] for each in (request, longer)]
    assert after[: len(before)] == before


async def test_fields_that_are_not_known_survive() -> None:
    after = json.loads((await repaired(APIS["openai_chat"], chat(TEXTS["data_uri"]))).body)
    assert after["x_unknown"] == {"kept": [1.5, "é"]}
    assert after["messages"][2]["x"] == 1
    assert after["messages"][1]["reasoning"] == "hm"
    result = json.loads((await repaired(APIS["anthropic_messages"], messages(TEXTS["data_uri"]))).body)
    assert result["messages"][2]["content"][0]["cache_control"] == {"type": "ephemeral"}


async def test_the_follow_up_comes_after_all_tool_messages_of_the_turn() -> None:
    calls = [{"id": f"c{n}", "function": {"name": f"t{n}"}} for n in range(3)]
    answers = [{"role": "tool", "tool_call_id": f"c{n}", "content": TEXTS["mcp_blocks"]} for n in range(2)]
    answers[1]["content"] = json.dumps([{**MCP_IMAGE, "data": BLUE}])
    last = {"role": "tool", "tool_call_id": "c2", "content": "words"}
    request = {"messages": [{"role": "assistant", "tool_calls": calls}, *answers, last, {"role": "assistant"}]}
    after = json.loads((await repaired(APIS["openai_chat"], request)).body)["messages"]
    assert [message["role"] for message in after] == ["assistant", "tool", "tool", "tool", "user", "assistant"]
    captions = [part["text"] for part in after[4]["content"] if part["type"] == "text"]
    assert captions == ["[image 1, from the result of t0, call c0]", "[image 2, from the result of t1, call c1]"]


async def test_an_image_by_address_goes_on_as_it_came_where_only_users_may_show_images() -> None:
    part = {"type": "image_url", "image_url": {"url": "https://pictures.example/1.png", "detail": "low"}}
    after = json.loads((await repaired(APIS["openai_chat"], chat([WORDS, part]))).body)["messages"]
    assert after[2]["content"][1] == {"type": "text", "text": "[image by address 1: after the tool results]"}
    assert after[3]["content"][-1] == part
    lax = await repaired(APIS["openai_compat"], chat([WORDS, part]))
    assert not lax.changes


NATIVE = {
    "openai_compat": chat([WORDS, PARTS["image_url_part"][1]]),
    "openai_responses": responses([PARTS["input_image_part"][0]]),
    "anthropic_messages": messages([{"type": "text", "text": "x"}, PARTS["anthropic_image_block"][0]]),
    "gemini": {
        "contents": [
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "name": "snap",
                            "response": {"rows": [1]},
                            "parts": [{"inlineData": {"mimeType": "image/png", "data": RED}}],
                        }
                    }
                ],
            }
        ]
    },
    "ollama": {"messages": [{"role": "tool", "content": "x", "images": [RED]}]},
}


@pytest.mark.parametrize("name", NATIVE)
async def test_content_that_is_right_for_the_target_stays_as_it_is(name: str) -> None:
    answer = await repaired(APIS[name], NATIVE[name])
    assert not answer.changes


async def test_parts_that_gemini_2_5_does_not_take_follow_the_response() -> None:
    after = json.loads((await repaired(APIS["gemini_2_5"], NATIVE["gemini"])).body)["contents"][0]["parts"]
    assert "parts" not in after[0]["functionResponse"]
    assert after[2]["inlineData"]["data"] == RED


MIXED = [
    {**WORDS, "annotations": None},
    "more words",
    MCP_IMAGE,
    {"type": "resource_link", "uri": "shots://2", "name": "the next one"},
    {"type": "resource", "resource": {"uri": "shots://3", "text": "in the third"}},
]


@pytest.mark.parametrize("name", [name for name in APIS if not name.startswith(("gemini", "ollama"))])
async def test_what_stands_beside_media_that_is_written_anew_gets_the_apis_own_form(name: str) -> None:
    api = APIS[name]
    first = await repaired(api, api.request(MIXED))
    after = json.loads(first.body)
    own = {"openai_responses": "input_text"}.get(name, "text")
    told = re.findall(r'\{"type":"(\w+)","text":"(.*?)"[,}]', first.body.decode())
    texts = [text for kind, text in told if kind == own]
    for words in ("a chart", "more words", "shots://2", "in the third"):
        assert any(words in text for text in texts), first.body
    assert "annotations" not in first.body.decode()
    assert "resource" not in {kind for kind, _ in re.findall(r'"type":"(resource)(_link)?"', first.body.decode())}
    assert list(native_images(after)) == [RED]
    assert not (await repaired(api, after)).changes


async def test_words_of_a_foreign_form_without_media_stay_as_they_came() -> None:
    assert not (await repaired(APIS["openai_responses"], responses([WORDS, "more words"]))).changes


async def test_an_apis_own_parts_beside_media_that_is_written_anew_stay() -> None:
    found = {"type": "search_result", "source": "https://a.example", "title": "A", "content": [WORDS]}
    request = messages([found, MCP_IMAGE, {**WORDS, "citations": None}])
    content = json.loads((await repaired(APIS["anthropic_messages"], request)).body)["messages"][2]["content"][0]
    assert content["content"][0] == found
    assert content["content"][-1] == {**WORDS, "citations": None}


URL_SAFE = str.maketrans("+/", "-_")
NOISE = picture_of_noise()


def answered(*parts: Json) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": list(parts)}]}


def inline(data: str) -> dict[str, Any]:
    return {"inlineData": {"mime_type": "image/png", "data": data.translate(URL_SAFE)}}


def response(name: str, **more: Json) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"output": name}, **more}}


async def after_repair(model: str, request: Json) -> list[dict[str, Any]]:
    """The parts of the last content, which another repair leaves as they are."""
    first = await repaired(APIS[model], request)
    assert first.changes
    after = json.loads(first.body)
    assert not (await repaired(APIS[model], after)).changes
    return after["contents"][-1]["parts"]


def names_and_images(parts: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    return [(part["functionResponse"]["name"], list(native_images(part))) for part in parts]


LANGCHAIN = answered(inline(RED), response("a"), inline(NOISE), response("b"))
BESIDE = answered(response("a"), inline(RED), response("b"), inline(NOISE))


async def test_media_before_its_response_is_put_into_it() -> None:
    # LangChain's order, in the alphabet of google-genai.
    assert names_and_images(await after_repair("gemini", LANGCHAIN)) == [("a", [RED]), ("b", [NOISE])]


async def test_media_before_its_response_follows_where_responses_hold_none() -> None:
    parts = await after_repair("gemini_2_5", LANGCHAIN)
    assert ["functionResponse" in part for part in parts[:3]] == [True, True, False]
    assert list(native_images(parts)) == [RED, NOISE]
    captions = [part["text"] for part in parts if "text" in part]
    assert "a" in captions[0]
    assert "b" in captions[1]


async def test_media_between_responses_belongs_to_the_one_before_if_the_first_has_none_before_it() -> None:
    assert names_and_images(await after_repair("gemini", BESIDE)) == [("a", [RED]), ("b", [NOISE])]


async def test_words_between_responses_go_with_the_media_beside_them() -> None:
    # The AI SDK's order.
    words = {"text": "This image is the result."}
    request = answered(response("a"), inline(RED), words, response("b"), inline(NOISE), words)
    parts = await after_repair("gemini_2_5", request)
    assert ["functionResponse" in part for part in parts[:3]] == [True, True, False]
    assert words["text"] in parts[0]["functionResponse"]["response"]["output"]
    assert list(native_images(parts)) == [RED, NOISE]
    assert parts[-1] == words


async def test_media_and_words_after_the_last_response_stay_where_the_api_takes_them() -> None:
    assert not (
        await repaired(APIS["gemini"], answered(response("a"), response("b"), inline(RED), {"text": "x"}))
    ).changes


@pytest.mark.parametrize("spelling", ["inlineData", "inline_data"])
async def test_parts_of_a_response_are_right_in_either_alphabet(spelling: str) -> None:
    blob = {"mimeType": "image/png", "data": NOISE.translate(URL_SAFE)}
    assert not (await repaired(APIS["gemini"], answered(response("a", parts=[{spelling: blob}])))).changes


@pytest.mark.parametrize(
    "said", [{"output": "{}"}, {"image": {"mime_type": "image/png", "data": "{}"}}, {"output": "b'{}'"}]
)
async def test_url_safe_base64_in_a_response_is_seen(said: Json) -> None:
    written = json.loads(json.dumps(said).replace("{}", NOISE.translate(URL_SAFE)))
    [part] = await after_repair("gemini", answered(response("a", response=written)))
    assert list(native_images(part)) == [NOISE]
    assert NOISE.translate(URL_SAFE) not in json.dumps(part)


async def test_a_result_as_the_python_sdk_prints_it_is_a_result() -> None:
    dump = {
        "meta": None,
        "content": [
            {**WORDS, "annotations": None, "meta": None},
            {"type": "image", "data": RED, "mime_type": "image/png"},
        ],
        "structured_content": None,
        "is_error": False,
        "result_type": "complete",
    }
    [part] = await after_repair("gemini", answered(response("a", response={"result": dump})))
    assert part["functionResponse"]["response"]["output"].startswith("a chart\n")


@pytest.mark.parametrize(
    ("media_type", "data"),
    [
        ("image/jpeg", RED),
        ("image/jpg", RED),
        ("image/png", f"{RED[:40]}\n{RED[40:]}"),
        ("image/png", f"data:image/png;base64,{RED}"),
        ("image/png", NOISE.translate(URL_SAFE)),
    ],
)
async def test_what_the_api_refuses_in_its_own_form_is_mended(media_type: str, data: str) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}
    after = json.loads((await repaired(APIS["anthropic_messages"], messages([image]))).body)
    source = after["messages"][2]["content"][0]["content"][0]["source"]
    assert source == {"type": "base64", "media_type": "image/png", "data": NOISE if "-" in data else RED}


async def test_an_error_with_an_image_stays_an_error_and_the_image_follows() -> None:
    request = messages(PARTS["anthropic_image_block"])
    request["messages"][2]["content"][0]["is_error"] = True
    after = json.loads((await repaired(APIS["anthropic_messages"], request)).body)["messages"][2]["content"]
    assert after[0]["is_error"] is True
    assert {block["type"] for block in after[0]["content"]} == {"text"}
    assert [block["type"] for block in after] == ["tool_result", "text", "image", "text"]


async def test_an_error_in_a_dump_becomes_the_dialects_own() -> None:
    dump = json.dumps({"content": [MCP_IMAGE], "isError": True})
    block = json.loads((await repaired(APIS["anthropic_messages"], messages(dump))).body)["messages"][2]["content"][0]
    assert block["is_error"] is True
    said = json.loads((await repaired(APIS["openai_chat"], chat(dump))).body)["messages"][2]["content"]
    assert said.startswith("ERROR: ")
    response = json.loads((await repaired(APIS["gemini"], contents(dump))).body)["contents"][1]["parts"][0]
    assert "error" in response["functionResponse"]["response"]


@every_api
async def test_what_the_model_cannot_take_is_named_and_kept_never_base64(api: Api) -> None:
    packed = base64.b64encode(b"PK\x03\x04" + bytes(100)).decode()
    blob = {"type": "resource", "resource": {"uri": "x://a.zip", "blob": packed, "mimeType": "application/zip"}}
    first = await repaired(api, api.request(json.dumps([blob])))
    assert packed.encode() not in first.body
    assert b"application/zip" in first.body
    assert b"handle bin_" in first.body
    assert not (await repaired(api, json.loads(first.body))).changes


async def test_a_document_goes_where_the_api_takes_it() -> None:
    blob = {"type": "resource", "resource": {"uri": "x://report.pdf", "blob": PDF, "mimeType": "application/pdf"}}
    after = (await repaired(APIS["anthropic_messages"], messages(json.dumps([blob])))).body
    assert json.loads(after)["messages"][2]["content"][0]["content"][0]["type"] == "document"
    outputs = json.loads((await repaired(APIS["openai_responses"], responses(json.dumps([blob])))).body)["input"]
    assert outputs[2]["output"][0]["type"] == "input_file"


async def test_broken_base64_costs_only_itself() -> None:
    broken = {"type": "image", "data": "no base64!", "mimeType": "image/png"}
    after = json.loads((await repaired(APIS["anthropic_messages"], messages([broken, MCP_IMAGE]))).body)
    assert list(native_images(after)) == [RED]


async def test_a_number_that_json_cannot_hold_means_that_the_request_passes_as_it_is() -> None:
    body = json.dumps(chat(TEXTS["data_uri"])).encode().replace(b"1.5", b"1e999")
    answer = await repairer().repair(body, "openai_chat", lambda _: model_profiles()["openai_chat"])
    assert answer.body is body


async def test_lone_surrogates_travel_as_they_came() -> None:
    answer = await repaired(APIS["openai_chat"], chat("\ud800 " + TEXTS["data_uri"]))
    assert json.loads(answer.body)["messages"][2]["content"].startswith("\ud800")


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.sampled_from([RED, *TEXTS.values()])
MEMBERS = ("type", "role", "content", "messages", "input", "contents", "parts", "data", "image", "tool", "text")
MORE_MEMBERS = ("source", "tool_result", "functionResponse", "response", "output", "images", "image_url", "url")
KEYS = st.sampled_from((*MEMBERS, *MORE_MEMBERS))
JSON = st.recursive(
    LEAVES | st.sampled_from(["tool", "tool_result", "image", "function_call_output", "text", "resource"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


@given(st.sampled_from(list(APIS)), JSON)
@settings(deadline=None, max_examples=150)
async def test_no_request_raises_and_repairing_twice_changes_nothing_more(name: str, content: Json) -> None:
    api = APIS[name]
    for request in (content, api.request(content), {"messages": content, "input": content, "contents": content}):
        first = await repaired(api, request)
        again = await repaired(api, json.loads(first.body))
        assert json.loads(again.body) == json.loads(first.body)


@given(
    st.sampled_from(list(APIS)),
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=40),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=12,
    ),
)
@settings(deadline=None, max_examples=100)
async def test_without_media_every_byte_is_kept(name: str, content: Json) -> None:
    api = APIS[name]
    body = json.dumps(api.request(content)).encode()
    profile = choose_model_profile(model_profiles(), api.target, model=api.model)
    assert (await repairer().repair(body, api.dialect, lambda _: profile)).body is body


@pytest.mark.parametrize("body", [b"", b"no json", b"[1]", b"null", b"[" * 100_000, b"\xff\xfe", b'{"messages": 7}'])
@pytest.mark.parametrize("dialect", REQUEST_APIS)
async def test_what_is_no_request_passes_as_it_is(dialect: str, body: bytes) -> None:
    assert (await repairer().repair(body, dialect, lambda _: model_profiles()["openai_chat"])).body is body
