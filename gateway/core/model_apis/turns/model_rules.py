"""Converting a model profile to the rules by which every result is decided."""

from gateway.core.profiles.model_profile import ModelProfile
from gateway.core.profiles.profile import (
    AudioRules,
    BlobRules,
    DocumentRules,
    EmbeddedTextRules,
    ImageRules,
    LinkRules,
    Profile,
    StructuredRules,
    TextRules,
    UnknownRules,
)


def shows_images(profile: ModelProfile) -> bool:
    """Whether images can be sent as images at all."""
    return profile.vision and profile.image.place != "none"


_PDF = "application/pdf"
_MOST_PAGES = 20
"""Pages of a document that are sent as text or as images to an API that accepts no documents."""


def rules_for(profile: ModelProfile, images_shown: int, *, converts_documents: bool = False) -> Profile:
    """Return the rules for a result if this many images of the turn have been used already.

    `converts_documents`: a PDF that the API does not accept becomes its text, or its pages.
    """
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
        document=DocumentRules(
            show="native" if _PDF in files else "text" if converts_documents else "line", max_pages=_MOST_PAGES
        ),
        blob=BlobRules(
            show="native" if files else "line",
            types=tuple(files),
            image_as_image=True,
            audio_as_audio=audio.place != "none",
        ),
        embedded_text=EmbeddedTextRules(show="text"),
        # Links are left to the assembler, as an API reads some of them itself.
        link=LinkRules(show="native"),
        unknown=UnknownRules(show="line"),
        structured=StructuredRules(send="never"),
    )
