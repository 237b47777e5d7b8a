"""Rules shared by several model APIs, each with its own messages and limits."""

import re
from collections.abc import Iterable, Mapping
from itertools import groupby

from gateway.core.model.media_types import inspect
from gateway.testing.model_apis.read_request import Conversation, Kind, Rule

RASTER = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def whole_base64(conversation: Conversation) -> Iterable[str]:
    """Base64 must follow RFC 4648: no line breaks, full padding, no `data:` prefix where only the data is expected."""
    for media in conversation.media:
        if media.content is None:
            yield f"{media.where}: invalid base64 data"


def types(allowed: Mapping[Kind, frozenset[str]], words: str = "{where}: unsupported media type {type}") -> Rule:
    """The declared type must be exactly one of those in `allowed`. A kind that is not in it is not checked."""

    def rule(conversation: Conversation) -> Iterable[str]:
        for media in conversation.media:
            if media.kind in allowed and media.media_type not in allowed[media.kind]:
                yield words.format(where=media.where, type=media.media_type)

    return rule


def readable(allowed: frozenset[str], words: str) -> Rule:
    """The detected type of an image's bytes must be in `allowed`, whatever the declared type is."""

    def rule(conversation: Conversation) -> Iterable[str]:
        for media in conversation.media:
            if media.kind == "image" and media.content and media.true_type not in allowed:
                yield words.format(where=media.where)

    return rule


def labelled(words: str) -> Rule:
    """The declared type of an image must be that of its bytes."""

    def rule(conversation: Conversation) -> Iterable[str]:
        for media in conversation.media:
            if media.kind == "image" and media.content and media.true_type != media.media_type:
                yield words.format(where=media.where, type=media.media_type)

    return rule


def at_most(count: int, kind: Kind, *, in_a_message: bool = False) -> Rule:
    """There must be at most `count` pieces of a kind, in the request or in each message."""

    def rule(conversation: Conversation) -> Iterable[str]:
        messages = conversation.messages
        for group in [[message] for message in messages] if in_a_message else [list(messages)]:
            found = sum(media.kind == kind for message in group for media in message.media)
            if found > count:
                where = group[0].where if in_a_message else "request"
                yield f"{where}: too many pieces of {kind}: {found}, at most {count}"

    return rule


def lighter(size: int, kind: Kind, *, encoded: bool = False) -> Rule:
    """Each piece of a kind must have at most `size` bytes, decoded or as base64."""

    def rule(conversation: Conversation) -> Iterable[str]:
        for media in conversation.media:
            found = len(media.data) if encoded else len(media.content or b"")
            if media.kind == kind and found > size:
                yield f"{media.where}: {kind} exceeds the maximum: {found} bytes > {size} bytes"

    return rule


def no_wider(edge: int) -> Rule:
    """Each image must have at most this many pixels on a side."""

    def rule(conversation: Conversation) -> Iterable[str]:
        for media in conversation.media:
            size = inspect(media.content or b"").size if media.kind == "image" else None
            if size and max(size) > edge:
                yield f"{media.where}: image dimensions {size.width}x{size.height} exceed {edge} pixels"

    return rule


def named(pattern: str, words: str = "{name}: the name of a function must match {pattern}") -> Rule:
    """The names of tools, offered and called, must match the whole `pattern`."""

    def rule(conversation: Conversation) -> Iterable[str]:
        called = (call.name for message in conversation.messages for call in message.calls)
        for name in dict.fromkeys([*conversation.tools, *called]):
            if not re.fullmatch(pattern, name):
                yield words.format(name=name[:80], pattern=pattern)

    return rule


def answered(*, missing: str, stray: str, split: bool = False) -> Rule:
    """Every call must be answered once, directly after the message that made it, and there must be no other answers.

    With `split` the answers are in messages of their own, all before any other message; otherwise they are all in the
    next message.
    """

    def rule(conversation: Conversation) -> Iterable[str]:
        waiting: list[str] = []
        where = ""
        for message in conversation.messages:
            for answer in message.answers:
                if answer.id in waiting:
                    waiting.remove(answer.id)
                else:
                    yield stray.format(where=message.where, id=answer.id)
            if split and message.answers:
                continue
            if waiting:
                yield missing.format(where=where, ids=", ".join(waiting))
            waiting, where = [call.id for call in message.calls], message.where
        if waiting:
            yield missing.format(where=where, ids=", ".join(waiting))

    return rule


def role_runs(conversation: Conversation) -> list[tuple[str, str]]:
    """The roles in order with the place where each begins, merging equal neighbours and ignoring system messages."""
    spoken = [message for message in conversation.messages if message.role not in ("system", "developer")]
    return [(role, next(run).where) for role, run in groupby(spoken, key=lambda message: message.role)]
