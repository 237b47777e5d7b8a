"""What can be said of sound and video without decoding it. Runs in a worker, on hostile bytes."""

from gateway.content.media import decode_sound, sound
from gateway.content.media.sound import Facts


def probe(content: bytes, media_type: str) -> Facts:
    """What the headers tell, asking PyAV where they are not read here; nothing of what is broken or unknown."""
    known = sound.header_facts(content, media_type)
    if known.seconds is not None:
        return known
    try:
        return decode_sound.container_facts(content, media_type)
    except MemoryError:
        raise
    except Exception:  # Demuxers raise anything on hostile bytes, and nothing is wrong with not knowing.
        return known
