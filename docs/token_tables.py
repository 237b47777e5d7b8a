"""The tables of docs/tokens.md: the formulas with their evidence, and which of them each host's models use."""

from collections.abc import Iterable, Mapping

from evidence import known_words_of

from gateway.core.model.media_types import PixelSize
from gateway.core.profiles.profile import Profile
from gateway.core.tokens import Content, Medium, TokenFormula, count_content

_SIZES = (PixelSize(640, 480), PixelSize(1920, 1080), PixelSize(3840, 2160))


def formula_table(formulas: Mapping[str, TokenFormula]) -> str:
    """Return one row for each formula: what three sizes of image, a page, and a second of sound and of video cost."""
    sizes = " | ".join(f"{size.width}x{size.height}" for size in _SIZES)
    lines = [
        f"| formula | models | {sizes} | page | sound, 1 s | video, 1 s |",
        "|---|---|" + "--:|" * (len(_SIZES) + 3),
    ]
    for name, formula in formulas.items():
        images = " | ".join(_image(formula, size) for size in _SIZES)
        rates = (formula.document.per_page, formula.audio.per_second, formula.video.per_second)
        lines.append(f"| [`{name}`](#{name}) | {formula.title} | {images} | {' | '.join(map(_number, rates))} |")
    return "\n".join(lines) + "\n"


def formula_evidence(formulas: Mapping[str, TokenFormula]) -> str:
    """Return a section for each formula: how it counts, for which names of models, and how that is known."""
    parts: list[str] = []
    for name, formula in formulas.items():
        parents = [formulas[parent] for parent in formula.lineage]
        own = {
            path: known
            for path, known in formula.evidence.items()
            if all(parent.evidence.get(path) != known for parent in parents)
        }
        said = dict.fromkeys(known_words_of(known) for known in own.values())
        parts += [f"### {name}\n", f"{formula.about}\n", f"Models: {_globs(formula.models)}\n"]
        parts += [*(f"- {words}" for words in said), ""] if said else []
    return "\n".join(parts).rstrip() + "\n"


def host_table(profiles: Mapping[str, Profile]) -> str:
    """Return the formulas of each host that has some of its own, and those of all others."""
    usual = profiles["default"].tokens.formulas
    lines = ["| host | formulas | how it is known |", "|---|---|---|"]
    for name, profile in profiles.items():
        known = profile.evidence.get("tokens.formulas")
        if known is None or (name != "default" and profiles["default"].evidence.get("tokens.formulas") == known):
            continue
        if profile.lineage and profiles[profile.lineage[0]].evidence.get("tokens.formulas") == known:
            continue
        title = "all others" if name == "default" else profile.title
        lines.append(f"| {title} | {_globs(profile.tokens.formulas or usual)} | {known_words_of(known)} |")
    return "\n".join(lines) + "\n"


def _image(formula: TokenFormula, size: PixelSize) -> str:
    count = count_content(Content(media=[Medium("image", size)]), formula)
    return f"{count.images:,}" if count.is_whole else "unknown"


def _number(number: float | None) -> str:
    return "unknown" if number is None else f"{number:,.0f}"


def _globs(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
