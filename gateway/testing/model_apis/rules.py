"""Rules that several model APIs have, each with its own words and limits."""

import re
from collections.abc import Iterable, Mapping
from itertools import groupby

from gateway.core.model.media_types import inspect
from gateway.testing.model_apis.read_request import Conversation, Kind, Rule

RASTER = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def whole_base64(conversation: Conversation) -> Iterable[str]:
    """Base64 as RFC 4648 says: no line breaks, all padding, no `data:` prefix where only the data is asked for."""
    for media in conversation.media:
        if media.content is None:
            yield f"{media.where}: invalid base64 data"


def types(allowed: Mapping[Kind, frozenset[str]], words: str = "{where}: unsupported media type {type}") -> Rule:
    """The declared type is one of `allowed`, letter for letter; a kind that is not in it is not looked at."""

    def rule(conversation: Conversation) -> Iterable[str]:
        for media in conversation.media:
            if media.kind in allowed and media.media_type not in allowed[media.kind]:
                yield words.format(where=media.where, type=media.media_type)

    return rule


def readable(allowed: frozenset[str], words: str) -> Rule:
    """The bytes of an image are one of `allowed`, whatever they are said to be."""

    def rule(conversation: Conversation) -> Iterable[str]:
        for media in conversation.media:
            if media.kind == "image" and media.content and media.true_type not in allowed:
                yield words.format(where=media.where)

    return rule


def labelled(words: str) -> Rule:
    """The declared type of an image is that of its bytes."""

    def rule(conversation: Conversation) -> Iterable[str]:
        for media in conversation.media:
            if media.kind == "image" and media.content and media.true_type != media.media_type:
                yield words.format(where=media.where, type=media.media_type)

    return rule


def at_most(count: int, kind: Kind, *, in_a_message: bool = False) -> Rule:
    """No more than `count` pieces of a kind, in the request or in each message."""

    def rule(conversation: Conversation) -> Iterable[str]:
        messages = conversation.messages
        for group in [[message] for message in messages] if in_a_message else [list(messages)]:
            found = sum(media.kind == kind for message in group for media in message.media)
            if found > count:
                where = group[0].where if in_a_message else "request"
                yield f"{where}: too many pieces of {kind}: {found}, at most {count}"

    return rule


def lighter(size: int, kind: Kind, *, encoded: bool = False) -> Rule:
    """No piece of a kind has more than `size` bytes, counted decoded or as base64."""

    def rule(conversation: Conversation) -> Iterable[str]:
        for media in conversation.media:
            found = len(media.data) if encoded else len(media.content or b"")
            if media.kind == kind and found > size:
                yield f"{media.where}: {kind} exceeds the maximum: {found} bytes > {size} bytes"

    return rule


def no_wider(edge: int) -> Rule:
    """No image has more pixels than this on a side."""

    def rule(conversation: Conversation) -> Iterable[str]:
        for media in conversation.media:
            size = inspect(media.content or b"").size if media.kind == "image" else None
            if size and max(size) > edge:
                yield f"{media.where}: image dimensions {size.width}x{size.height} exceed {edge} pixels"

    return rule


def named(pattern: str, words: str = "{name}: the name of a function must match {pattern}") -> Rule:
    """The names of tools, offered and called, match `pattern` as a whole."""

    def rule(conversation: Conversation) -> Iterable[str]:
        called = (call.name for message in conversation.messages for call in message.calls)
        for name in dict.fromkeys([*conversation.tools, *called]):
            if not re.fullmatch(pattern, name):
                yield words.format(name=name[:80], pattern=pattern)

    return rule


def answered(*, missing: str, stray: str, split: bool = False) -> Rule:
    """Every call is answered directly after the message that made it, once, and nothing else is.

    With `split` the answers stand in messages of their own, and all of them come before any other message; otherwise
    they stand in the one next message.
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
    """The roles in order with where each begins, equal neighbours taken together, system messages left out."""
    spoken = [message for message in conversation.messages if message.role not in ("system", "developer")]
    return [(role, next(run).where) for role, run in groupby(spoken, key=lambda message: message.role)]
