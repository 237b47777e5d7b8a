"""Effects and their outcomes in words, for people who look at how a result was made."""

from gateway.core.fact_words import counted, join_facts, pixel_words, plain, seconds_words
from gateway.core.model.effects import (
    AudioTarget,
    ConvertAudio,
    Converted,
    Describe,
    Described,
    DocumentRead,
    Effect,
    Failed,
    FitImage,
    Fitted,
    ImageTarget,
    JsonOutlined,
    Keep,
    Kept,
    LinkRead,
    Outcome,
    OutlineJson,
    Probe,
    Probed,
    ReadDocument,
    ReadLink,
    Rendered,
    RenderPages,
    WriteFile,
    Written,
)
from gateway.core.wording import probed


def effect_words(effect: Effect) -> str:
    """Say what an effect does, in a few words."""
    match effect:
        case FitImage():
            return f"fit {effect.media_type} to {_target_words(effect.target)}"
        case RenderPages():
            numbers = ", ".join(map(str, effect.pages))
            return f"draw page{'' if len(effect.pages) == 1 else 's'} {numbers} as {_target_words(effect.target)}"
        case ReadDocument():
            return f"read the text of a document, at most {counted(effect.max_pages, 'page')}"
        case ConvertAudio(target=target):
            length = f"at most {target.max_seconds:,} s" if target.max_seconds else None
            return (
                f"make {effect.media_type} {join_facts(' or '.join(target.types) or 'as it is', length, _most(target))}"
            )
        case Probe() | Describe():
            return f"{type(effect).__name__.lower()} {effect.media_type}"
        case OutlineJson():
            return f"write the shape of {counted(len(effect.data), 'byte')} of JSON"
        case ReadLink():
            return f"read {plain(effect.uri)}, at most {effect.max_bytes:,} bytes"
        case Keep():
            return f"keep {join_facts(effect.media_type, effect.name)}"
        case WriteFile():
            return f"write a file of {join_facts(effect.media_type, effect.name)}"


def _target_words(target: ImageTarget) -> str:
    edge = f"at most {target.max_edge:,} px" if target.max_edge else None
    return join_facts(" or ".join(target.types), edge, _most(target), None if target.animation else "first frame only")


def _most(target: ImageTarget | AudioTarget) -> str | None:
    return f"at most {target.max_bytes:,} bytes" if target.max_bytes else None


def outcome_words(outcome: Outcome | None) -> str:
    """Say what came of an effect; None: it was not performed."""
    match outcome:
        case Fitted():
            return f"{outcome.media_type}, {pixel_words(outcome.original)} became {pixel_words(outcome.pixels)}"
        case Rendered():
            drawn = sum(isinstance(image, Fitted) for image in outcome.images)
            return f"{drawn} of {len(outcome.images)} drawn"
        case DocumentRead():
            return f"{counted(outcome.pages, 'page')}, {counted(sum(map(len, outcome.texts)), 'character')}"
        case Converted():
            return f"{outcome.media_type}, {seconds_words(outcome.original)} became {seconds_words(outcome.seconds)}"
        case Probed():
            return probed(outcome) or "nothing can be said"
        case _:
            return _short_words(outcome)


def _short_words(outcome: JsonOutlined | Described | LinkRead | Kept | Written | Failed | None) -> str:
    match outcome:
        case JsonOutlined():
            return counted(len(outcome.shapes), "shape") if outcome.shapes else "it is not JSON"
        case Described():
            return f"described by {outcome.by}"
        case LinkRead():
            return f"{len(outcome.contents)} contents"
        case Kept():
            return f"handle {outcome.handle}"
        case Written():
            return outcome.path
        case Failed():
            return f"failed: {outcome.reason}"
        case None:
            return "not performed"
