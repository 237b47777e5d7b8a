"""Lower a whole turn for a model API: settle it, and write it in the API's own form."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args
from uuid import uuid4

from gateway.config.builtin_profiles import counting_formulas, model_profiles
from gateway.content.media.share import media_share
from gateway.content.shaping.effects import EffectRunner, MediaDescriber
from gateway.content.shaping.provider_file_links import Files, with_files_fetched, with_files_uploaded
from gateway.content.shaping.results import as_envelope
from gateway.content.shaping.settle import settle_at_once, settle_turn
from gateway.content.store import ContentStore
from gateway.core.model.effects import Describe, Effect, Failed, Keep, Kept, MediaWork, Outcome, WriteFile
from gateway.core.model.json_values import is_object
from gateway.core.model.notes import Note
from gateway.core.model.turn import Call
from gateway.core.model_apis import bedrock_converse
from gateway.core.model_apis.registry import APIS
from gateway.core.model_apis.turns import Assembled, Choices, assemble
from gateway.core.profiles.model_profile import ModelProfile
from gateway.core.profiles.model_profiles import choose_model_profile, with_tool_images
from gateway.core.results.decisions import TokenBudget
from gateway.core.results.rescue import rescue
from gateway.errors import InvalidRequest, UnsupportedContent

BOTO3_TARGET = "bedrock_boto3"
"""The target for boto3: messages of `bedrock_converse` with media as bytes instead of base64."""

OnUnsupported: TypeAlias = Literal["note", "error", "transcode"]
Links: TypeAlias = Literal["text", "native"]
ToolImages: TypeAlias = Literal["in_tool", "follow_up", "after_reply"]


@dataclass(frozen=True)
class LoweredTurn:
    """The messages after the assistant's message, as plain JSON values, and a note for every change made.

    For `bedrock_boto3` media is `bytes`, which is not a JSON value.
    """

    messages: list[dict[str, Any]]
    notes: tuple[Note, ...]


async def lower_turn(
    calls: Sequence[Any],
    target: str,
    *,
    model: str | None = None,
    base_url: str | None = None,
    store: ContentStore | None = None,
    files: Files | None = None,
    owner: str = "local",
    on_unsupported: OnUnsupported = "note",
    links: Links = "text",
    tool_images: ToolImages | None = None,
    describer: MediaDescriber | None = None,
    media: MediaWork | None = None,
    max_tokens: int | None = None,
) -> LoweredTurn:
    """Return the messages that give a model the results of all its calls, in the one form that its API accepts.

    Args:
        calls: the calls in the assistant's order. Each is a mapping or an object with `id`, `name`, `result` and
            optionally `arguments`; the result is an `Envelope`, a CallToolResult's JSON or the JSON-RPC
            response around it, or an SDK's CallToolResult; media may be given as bytes.
            `_meta["mcp-gateway/raw"]` of a result may hold the API's own content, by target; it is sent unchanged.
        target: `openai_chat`, `openai_responses`, `anthropic_messages`, `gemini`, ... (docs/models/README.md). For
            Amazon Bedrock: `bedrock_boto3` for boto3's `converse`, `bedrock_converse` for the JSON of the HTTP API.
        model: the model's name, if it matters (`gemini-2.5-pro` has other rules than `gemini-3-pro`).
        base_url: the API's address, if it matters (`https://api.deepseek.com`).
        store: the store that keeps content that the API cannot take; without one, such content is only named.
        files: the files of model APIs' providers (`gateway.content.provider_files.ProviderFiles`): large content is
            uploaded once, and sent by its id if the API takes one; a file of another provider is fetched and sent as
            bytes. Without `files`, a file of another provider becomes a line.
        owner: the owner of stored content.
        on_unsupported: how to treat content of a kind that the API cannot take. `note`: name it in one line of text;
            `error`: refuse the turn; `transcode`: convert it to another kind if possible (the source of a drawing as
            text; the text of a PDF, or its pages as images), else name it. Images and sound of a type that the API
            does not take are always converted, and text files are sent as text.
        links: `text`: a link becomes one line; `native`: an API that fetches URLs itself gets them if the link says
            their type. The gateway fetches nothing. A provider's file (`openai-file:file-abc`) is not affected.
        tool_images: where to put images for servers on which the model's chat template decides (vLLM, llama.cpp,
            Ollama, ...): into the tool's message; after it; or after a short reply by the assistant, for templates
            that require alternating roles. None: as in the model's profile, else after the tool's message.
        describer: describes images or sound for models that cannot take them: an object with
            `kinds` (of `"image"`, `"audio"`) and `async describe(content, media_type) -> Described`.
        media: an open `gateway.MediaWorkers` that fits images, to keep its processes from turn to turn. None: one
            pool for all turns that are lowered concurrently in this event loop.
        max_tokens: the budget of all results of the turn, text and images together, by the formula of the model
            (docs/tokens.md). Large results share what small ones leave: their texts are cut, with a handle to the rest,
            and their images scaled down or named in a line. None: no limit.

    Images that need fitting are fitted in worker processes, which concurrent calls share fairly.

    Raises:
        ProfileError: the target does not exist, or does not support `tool_images`.
        InvalidRequest: a call has no id, name or result, or an option has an unknown value.
        UnsupportedContent: with `on_unsupported="error"`, if the API cannot take some content.
    """
    _check_choices(on_unsupported, links, tool_images)
    profile = _profile(target, model, base_url, tool_images)
    transcodes = on_unsupported == "transcode"
    choices = Choices(
        links_native=links == "native",
        drawings_as_text=transcodes,
        documents_converted=transcodes,
        describes=frozenset(describer.kinds) if describer is not None else frozenset(),
        tokens=_token_budget(profile, model, max_tokens),
    )
    turn = await with_files_fetched(_calls(calls), profile, files)
    async with media_or_shared(media) as workers:
        with media_share(uuid4().hex):
            runner = EffectRunner(store or Nowhere(), workers, describer, owner=owner)
            done = await settle_turn(turn, profile, runner, choices)
    uploaded, told = await with_files_uploaded(done.turn, profile, files)
    return _written(replace(done, turn=uploaded, notes=(*done.notes, *told)), profile, target, on_unsupported)


@asynccontextmanager
async def media_or_shared(media: MediaWork | None) -> AsyncGenerator[MediaWork]:
    """Provide the given workers, or the shared workers of this event loop."""
    if media is not None:
        yield media
        return
    from gateway.content.media.shared import shared_workers  # processes are wanted only where an image has to be fitted

    async with shared_workers() as workers:
        yield workers


def lower_turn_now(
    calls: Sequence[Any],
    target: str,
    *,
    model: str | None = None,
    base_url: str | None = None,
    on_unsupported: OnUnsupported = "note",
    links: Links = "text",
    tool_images: ToolImages | None = None,
) -> LoweredTurn:
    """Do `lower_turn` without effects and without await: content that needs an effect (such as fitting) becomes a line.

    Raises:
        ProfileError, InvalidRequest, UnsupportedContent: as for `lower_turn`.
    """
    _check_choices(on_unsupported, links, tool_images)
    profile = _profile(target, model, base_url, tool_images)
    drawings = on_unsupported == "transcode"
    choices = Choices(links_native=links == "native", drawings_as_text=drawings, fits=False)
    turn = _calls(calls)
    done, _ = settle_at_once(
        lambda outcomes: assemble(turn, profile, outcomes, choices),
        lambda wanted: {key: _undone(effect) for key, effect in wanted.items()},
    )
    return _written(done, profile, target, on_unsupported)


def model_profile_for(target: str, model: str | None, base_url: str | None) -> ModelProfile:
    """Return the target's profile that best matches this model and address. Raises ProfileError."""
    named = "bedrock_converse" if target == BOTO3_TARGET else target
    return choose_model_profile(model_profiles(), named, model=model, base_url=base_url)


def _token_budget(profile: ModelProfile, model: str | None, most: int | None) -> TokenBudget | None:
    """Return the budget of a turn, if it has one. Raises InvalidRequest if there could be no result."""
    if most is None:
        return None
    if most < 1:
        raise InvalidRequest(f"max_tokens cannot be {most}", remedy="it is at least 1, or None for no limit")
    return TokenBudget(most, counting_formulas(profile.tokens.formulas, model))


def _profile(target: str, model: str | None, base_url: str | None, tool_images: ToolImages | None) -> ModelProfile:
    profile = model_profile_for(target, model, base_url)
    return profile if tool_images is None else with_tool_images(profile, tool_images)


def _undone(effect: Effect) -> Outcome:
    match effect:
        case Keep() | WriteFile():
            return Kept(None)
        case Describe():
            return Failed("lower_turn_now does not describe")
        case _:
            return Failed("it has to be fitted to the API, which lower_turn does")


def _written(done: Assembled, profile: ModelProfile, target: str, on_unsupported: OnUnsupported) -> LoweredTurn:
    lost = [note.text for note in done.notes if note.kind in ("named", "dropped", "failed")]
    if on_unsupported == "error" and lost:
        raise UnsupportedContent(f"{profile.name} cannot take all of the results: {'; '.join(lost)}")
    messages = APIS[profile.writing].write_turn(done.turn)
    return LoweredTurn(bedrock_converse.for_boto3(messages) if target == BOTO3_TARGET else messages, done.notes)


def _calls(calls: Sequence[Any]) -> list[Call]:
    return [_call(call, f"calls[{at}]") for at, call in enumerate(calls)]


def _call(call: Any, where: str) -> Call:
    def member(name: str) -> Any:
        return call.get(name) if is_object(call) else getattr(call, name, None)

    call_id, name, result = member("id"), member("name"), member("result")
    if not isinstance(call_id, str) or not isinstance(name, str) or result is None:
        raise InvalidRequest(f"{where} needs an id, a name and a result")
    return Call(call_id, name, rescue(as_envelope(result, f"{where}.result")), member("arguments") or {})


def _check(option: str, given: str | None, allowed: Sequence[str]) -> None:
    """Raise InvalidRequest for an unknown value: a mistyped one would silently mean another."""
    if given not in allowed:
        raise InvalidRequest(f"{option} cannot be {given!r}", remedy=f"it is one of {', '.join(map(repr, allowed))}")


def _check_choices(on_unsupported: str, links: str, tool_images: str | None) -> None:
    _check("on_unsupported", on_unsupported, get_args(OnUnsupported))
    _check("links", links, get_args(Links))
    if tool_images is not None:
        _check("tool_images", tool_images, get_args(ToolImages))


@dataclass(frozen=True)
class _NotKept:
    """Stands for content that was not stored, and has no handle."""

    handle: None = None


class Nowhere:
    """A store that keeps nothing."""

    async def put(
        self, content: bytes, *, owner: str, media_type: str, name: str | None = None, origin: str | None = None
    ) -> Any:
        """Keep nothing: content that is not shown is named in a line without a handle."""
        return _NotKept()
