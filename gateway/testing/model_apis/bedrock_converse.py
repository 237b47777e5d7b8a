"""Stand-in for Amazon Bedrock's Converse.

Types, enums and patterns: botocore 1.44.5, bedrock-runtime. Counts and sizes in a message, names of documents and their
text: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html, ..._DocumentBlock. toolConfig:
https://github.com/vxcontrol/pentagi/pull/196. `bytes` is base64 here, as on the wire.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gateway.testing.model_apis.read_request import Conversation, Dialect, Kind, Media, Message, Ref, lines
from gateway.testing.model_apis.rules import answered, at_most, labelled, lighter, named, no_wider, whole_base64
from gateway.testing.model_apis.shapes import OTHERS, OneMember, Tagged

_SOURCE = OneMember({"bytes": str, "s3Location": OTHERS}, {})
_DOCUMENT_SOURCE = OneMember({"bytes": str, "s3Location": OTHERS, "text": str, "content": list}, {})
_DOCUMENT = {
    "format?": frozenset({"pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"}),
    "name": str,
    "source": _DOCUMENT_SOURCE,
    "context?": str,
    "citations?": dict,
}
_SHOWN = {
    "text": str,
    "image": {"format": frozenset({"png", "jpeg", "gif", "webp"}), "source": _SOURCE},
    "document": _DOCUMENT,
    "video": {
        "format": frozenset({"mkv", "mov", "mp4", "webm", "flv", "mpeg", "mpg", "wmv", "three_gp"}),
        "source": _SOURCE,
    },
    "searchResult": OTHERS,
}
_RESULT = {
    "toolUseId": str,
    "content": [OneMember({**_SHOWN, "json": object}, {})],
    "status?": frozenset({"success", "error"}),
    "type?": str,
}
_BLOCKS = {**_SHOWN, "cachePoint": OTHERS, "guardContent": OTHERS}
_USER = OneMember({**_BLOCKS, "audio": {"format": str, "source": _SOURCE}, "toolResult": _RESULT}, {})
_ASSISTANT = OneMember(
    {
        **_BLOCKS,
        "toolUse": {"toolUseId": str, "name": str, "input": object, "type?": str},
        "reasoningContent": OTHERS,
        "citationsContent": OTHERS,
    },
    {},
)
_TOOL = OneMember({"toolSpec": {"name": str, **OTHERS}, "cachePoint": OTHERS, "systemTool": OTHERS}, {})
_KINDS: tuple[Kind, ...] = ("document", "image", "video", "audio")


def _blocks(content: Any, where: str) -> Iterator[tuple[str, Mapping[str, Any], list[Any]]]:
    """Every block with its place and its sibling blocks, including those of tool results."""
    for number, block in enumerate(content):
        yield f"{where}.content.{number}", block, content
        if "toolResult" in block:
            yield from _blocks(block["toolResult"]["content"], f"{where}.content.{number}.toolResult")


def _all(conversation: Conversation) -> Iterator[tuple[str, Mapping[str, Any], list[Any]]]:
    for message in conversation.messages:
        yield from _blocks((message.raw or {})["content"], message.where)


def _read(request: Mapping[str, Any]) -> list[Message]:
    return [_message(f"messages.{number}", message) for number, message in enumerate(request["messages"])]


def _message(where: str, message: Mapping[str, Any]) -> Message:
    content: list[Mapping[str, Any]] = message["content"]
    media: list[Media] = []
    for at, block, _ in _blocks(content, where):
        for kind in _KINDS:
            if kind in block and "bytes" in block[kind]["source"]:
                media_type = f"{'application' if kind == 'document' else kind}/{block[kind].get('format', '')}"
                media.append(Media(f"{at}.{kind}", kind, media_type, block[kind]["source"]["bytes"]))
    used = (block["toolUse"] for block in content if "toolUse" in block)
    given = (block["toolResult"] for block in content if "toolResult" in block)
    return Message(
        where,
        message["role"],
        lines(block.get("text") for block in content),
        tuple(Ref(use["toolUseId"], use["name"]) for use in used),
        tuple(Ref(result["toolUseId"], "") for result in given),
        tuple(media),
        message,
    )


def _blank(conversation: Conversation) -> Iterable[str]:
    for where, block, _ in _all(conversation):
        if "text" in block and not block["text"].strip():
            yield f"The text field in the ContentBlock object at {where} is blank. Add text to it, and try again."


def _ids(conversation: Conversation) -> Iterable[str]:
    for message in conversation.messages:
        for ref in (*message.calls, *message.answers):
            if not re.fullmatch(r"[a-zA-Z0-9_.:-]{1,64}", ref.id):
                yield f"{message.where}: toolUseId {ref.id:.80} must satisfy the pattern [a-zA-Z0-9_.:-]{{1,64}}"


def _documents(conversation: Conversation) -> Iterable[str]:
    names: set[str] = set()
    for where, block, beside in _all(conversation):
        if "document" not in block:
            continue
        name: str = block["document"]["name"]
        if not re.fullmatch(r"[A-Za-z0-9()\[\]-]+(?: [A-Za-z0-9()\[\]-]+)*", name) or len(name) > 200:
            yield (
                f"{where}.document: The document file name can only contain alphanumeric characters, whitespace "
                "characters, hyphens, parentheses and square brackets, and no two whitespace characters in a row."
            )
        if name in names:
            yield f"{where}.document: duplicate document name: {name}"
        names.add(name)
        if not any("text" in one for one in beside):
            yield f"{where}: a document needs a text block beside it"


def _only_users_show(conversation: Conversation) -> Iterable[str]:
    for message in conversation.messages:
        if message.role == "assistant" and message.media:
            yield f"{message.where}: images and documents are only allowed in messages of the user"


def _begins(conversation: Conversation) -> Iterable[str]:
    if conversation.messages[0].role != "user":
        yield "A conversation must start with a user message."


def _configured(conversation: Conversation) -> Iterable[str]:
    used = any(message.calls or message.answers for message in conversation.messages)
    if used and not conversation.tools:
        yield "The toolConfig field must be defined when using toolUse and toolResult content blocks."


def _tools(request: Mapping[str, Any]) -> list[str]:
    configured: Mapping[str, Any] = request.get("toolConfig") or {"tools": ()}
    return [tool["toolSpec"]["name"] for tool in configured["tools"] if "toolSpec" in tool]


BEDROCK_CONVERSE = Dialect(
    {
        "messages": [Tagged({"user": {"content": [_USER]}, "assistant": {"content": [_ASSISTANT]}}, "role")],
        "toolConfig?": {"tools": [_TOOL], **OTHERS},
        **OTHERS,
    },
    _read,
    (
        _begins,
        _configured,
        answered(
            missing="{where}: Expected toolResult blocks in the next message for the following Ids: {ids}",
            stray="{where}: the toolResult block {id} exceeds the toolUse blocks of the previous turn",
        ),
        _blank,
        _ids,
        _documents,
        _only_users_show,
        whole_base64,
        labelled("{where}: the format does not match the bytes of the image ({type})"),
        at_most(20, "image", in_a_message=True),
        at_most(5, "document", in_a_message=True),
        lighter(3_750_000, "image"),
        lighter(4_500_000, "document"),
        no_wider(8_000),
        named(r"[a-zA-Z0-9_-]{1,64}"),
    ),
    _tools,
)
