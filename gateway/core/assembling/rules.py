"""A model profile as the rules that decide every result."""

from gateway.core.model.model_profile import ModelProfile
from gateway.core.model.profile import (
    AudioRules,
    BlobRules,
    EmbeddedTextRules,
    ImageRules,
    LinkRules,
    Profile,
    StructuredRules,
    TextRules,
    UnknownRules,
)


def shows_images(profile: ModelProfile) -> bool:
    """Whether images may leave as images at all."""
    return profile.vision and profile.image.place != "none"


def rules_for(profile: ModelProfile, images_shown: int) -> Profile:
    """What may leave as media, when so many images of the turn have left already."""
    image, audio, document, video = profile.image, profile.audio, profile.document, profile.video
    left = None if image.max_count is None else image.max_count - images_shown
    files = [*(document.types if document.place != "none" else ()), *(video.types if video.place != "none" else ())]
    files += audio.types if audio.place != "none" else ()
    return Profile(
        name=profile.name,
        text=TextRules(max_chars=profile.text.max_chars, empty="named"),
        image=ImageRules(
            show="native" if shows_images(profile) and (left is None or left > 0) else "line",
            types=(*image.types, *image.follow_up_types),
            max_edge=image.max_edge,
            max_bytes=image.max_bytes,
            max_count=left if left is None or left > 0 else None,
        ),
        audio=AudioRules(show="native" if audio.place != "none" else "line", types=audio.types),
        blob=BlobRules(show="native" if files else "line", types=tuple(files), image_as_image=True),
        embedded_text=EmbeddedTextRules(show="text"),
        # Links are the assembler's: some of them an API reads itself.
        link=LinkRules(show="native"),
        unknown=UnknownRules(show="line"),
        structured=StructuredRules(send="never"),
    )
