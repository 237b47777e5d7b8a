"""Fit sound to a target. Runs in a worker, on hostile bytes.

These are tried in order until one fits: unchanged; cut at the end without decoding; converted, at a lower bit rate if
bytes are short (down to what speech needs: one channel, 16 kHz); converted and cut.
"""

import math
from typing import NamedTuple

from gateway.content.media import decode_sound, sound
from gateway.content.media.decode_sound import EXTRA, MP3, MP3_RATES, WAV, Plan
from gateway.content.media.probe_media import probe
from gateway.content.media.sound import Facts
from gateway.core.model.effects import AudioTarget
from gateway.core.model.media_types import normalise
from gateway.errors import MediaError

MOST_BYTES = 64 * 1024 * 1024
"""The maximum size if the target does not limit it."""

LARGE_WAV = 8 * 1024 * 1024
"""Larger WAV files are made only if MP3 is not accepted."""

_LOSSLESS = frozenset({"pcm", "float", "alaw", "mulaw", "flac", "alac"})
_SPEECH_RATE = 16_000
_HEADER = 44
_TAG_FRAME = 500
_MP3_PADDING = 0.1
"""Seconds by which the frames of an MP3 may exceed the encoded sound; players skip them."""

_LEAST_SECONDS = 0.1
_TRIES = 4


class Sound(NamedTuple):
    """Encoded sound, its length, and its original length in seconds; 0 if a length is unknown."""

    content: bytes
    media_type: str
    seconds: float
    original: float


def convert(content: bytes, media_type: str, target: AudioTarget) -> Sound:
    """Fit `content`, whose actual type is `media_type`, to `target`. Bytes that fit are returned unchanged.

    Raises MediaError if the cause is known, and whatever else a decoder raises on broken input.
    """
    types = frozenset(normalise(name) or name for name in target.types)
    is_taken = not types or media_type in types
    limit = target.max_bytes or math.inf
    longest = target.max_seconds or math.inf
    known = probe(content, media_type)
    if is_taken and len(content) <= limit and (longest == math.inf or (known.seconds or math.inf) <= longest):
        return Sound(content, media_type, known.seconds or 0.0, known.seconds or 0.0)
    if is_taken and (cut := sound.shorten_sound(content, media_type, longest, math.inf)) and len(cut[0]) <= limit:
        return Sound(cut[0], media_type, cut[1], known.seconds or cut[1])
    try:
        return _refit(content, media_type, target, types or frozenset({WAV, MP3}), known)
    except MediaError as error:
        if error.remedy == EXTRA and is_taken and (cut := sound.shorten_sound(content, media_type, longest, limit)):
            return Sound(cut[0], media_type, cut[1], known.seconds or cut[1])
        raise


def _refit(content: bytes, media_type: str, target: AudioTarget, types: frozenset[str], known: Facts) -> Sound:
    plans = _plans(known, types)
    if not plans:
        raise MediaError(f"it cannot be converted to {' or '.join(target.types)}")
    limit = min(target.max_bytes or MOST_BYTES, MOST_BYTES)
    longest = float(target.max_seconds or math.inf)
    wanted = min(longest, known.seconds or math.inf)
    plan = next((plan for plan in plans if _size(plan, wanted) <= _room(plan, limit, types)), plans[-1])
    padding = _MP3_PADDING if plan.media_type == MP3 and (known.seconds or math.inf) > longest else 0.0
    seconds = min(longest - padding, (limit - _size(plan, 0)) * 8 / plan.bit_rate)
    for _ in range(_TRIES):
        if seconds < _LEAST_SECONDS:
            break
        made, length = decode_sound.converted(content, media_type, plan, seconds)
        if len(made) <= limit:
            return Sound(made, plan.media_type, length, max(known.seconds or 0.0, length))
        seconds = length * 0.95 * limit / len(made)
    raise MediaError(f"it cannot be made to fit {limit:,} bytes as {' or '.join(sorted(types & {WAV, MP3}))}")


def _plans(known: Facts, types: frozenset[str]) -> list[Plan]:
    """Return the possible conversions, from the best to the smallest."""
    rate, channels = min(known.rate or 44_100, 48_000), min(known.channels or 2, 2)
    wav = _pcm(rate, channels)
    plans: list[Plan] = []
    if WAV in types and (known.codec in _LOSSLESS or MP3 not in types):
        plans.append(wav)
    if MP3 in types:
        usual = rate if rate in MP3_RATES else 44_100
        plans.append(Plan(MP3, usual, channels, (64_000 if usual > 24_000 else 32_000) * channels))
        plans += [Plan(MP3, 24_000, 1, 48_000), Plan(MP3, _SPEECH_RATE, 1, 32_000)]
    elif WAV in types:
        plans.append(_pcm(min(rate, _SPEECH_RATE), 1))
    return plans


def _pcm(rate: int, channels: int) -> Plan:
    return Plan(WAV, rate, channels, rate * channels * 16)


def _size(plan: Plan, seconds: float) -> float:
    overhead = _HEADER if plan.media_type == WAV else _TAG_FRAME + _MP3_PADDING * plan.bit_rate / 8
    return overhead + seconds * plan.bit_rate / 8


def _room(plan: Plan, limit: int, types: frozenset[str]) -> int:
    return min(limit, LARGE_WAV) if plan.media_type == WAV and MP3 in types else limit
