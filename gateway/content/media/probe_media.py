"""Read facts about sound and video without decoding it. Runs in a worker, on hostile bytes."""

from gateway.content.media import decode_sound, sound
from gateway.content.media.sound import Facts


def probe(content: bytes, media_type: str) -> Facts:
    """Return the facts in the headers, read by PyAV if not read here. Broken or unknown ones are None."""
    known = sound.header_facts(content, media_type)
    if known.seconds is not None:
        return known
    try:
        return decode_sound.container_facts(content, media_type)
    except MemoryError:
        raise
    except Exception:  # Demuxers raise anything on hostile bytes, and the facts may be unknown.
        return known
