"""From tones to samples to WAV: each frequency is a sum of overtones, each tone has an attack and dies away."""

from __future__ import annotations  # array takes its parameter at run time only from Python 3.12 on

import math
import sys
import wave
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import Literal

from .music import BadMusic, Tone

RATE = 22_050
"""Samples in a second: enough for what is audible here up to 11 kHz, and half the bytes of a CD."""
LONGEST = 15.0
"""Seconds. A longer sound would not fit into the 1 MiB that SSE clients commonly take in one event, as base64."""
PEAK = 0.85

Instrument = Literal["sine", "organ", "bell", "strings"]


@dataclass(frozen=True)
class _Timbre:
    """The overtones as (multiple of the frequency, strength), and how a tone begins and dies away, in seconds.

    `decay` is the time in which it falls to a third; infinite for a tone that is held until its release.
    """

    overtones: tuple[tuple[float, float], ...]
    attack: float
    decay: float
    release: float


TIMBRES: dict[Instrument, _Timbre] = {
    "sine": _Timbre(((1, 1.0),), 0.01, math.inf, 0.05),
    "organ": _Timbre(((0.5, 0.3), (1, 1.0), (2, 0.6), (3, 0.25), (4, 0.3), (8, 0.1)), 0.02, math.inf, 0.06),
    "bell": _Timbre(((1, 1.0), (2.0, 0.55), (2.4, 0.35), (3.0, 0.25), (4.5, 0.15)), 0.003, 0.55, 0.10),
    "strings": _Timbre(tuple((n, 1 / n**1.2) for n in range(1, 9)), 0.08, 2.5, 0.12),
}


def synthesise(tones: Iterable[Tone], instrument: Instrument) -> array[int]:
    """The tones one after another as 16-bit samples, the loudest at 85 %.

    Raises BadMusic if they take longer than LONGEST.
    """
    chosen = tuple(tones)
    seconds = sum(tone.seconds for tone in chosen)
    if seconds > LONGEST:
        raise BadMusic(f"this would take {seconds:.1f} seconds: at most {LONGEST:.0f} can be made at once")
    samples = array("d")
    for tone in chosen:
        samples.extend(_tone(tone, TIMBRES[instrument]))
    loudest = max((abs(sample) for sample in samples), default=0) or 1
    return array("h", (round(sample / loudest * PEAK * 32_767) for sample in samples))


def wav(samples: array[int]) -> bytes:
    """The samples as a WAV file: one channel, 16 bits."""
    data = array("h", samples)
    if sys.byteorder == "big":
        data.byteswap()
    file = BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(RATE)
        writer.writeframes(data.tobytes())
    return file.getvalue()


def _tone(tone: Tone, timbre: _Timbre) -> array[float]:
    count = round(tone.seconds * RATE)
    samples = array("d", bytes(8 * count))
    for frequency in tone.frequencies:
        for multiple, strength in timbre.overtones:
            turn = 2 * math.pi * frequency * multiple / RATE
            # Above half the rate a frequency would come back as a lower one.
            if turn < math.pi:
                for index in range(count):
                    samples[index] += strength * math.sin(turn * index)
    for index, loudness in enumerate(_envelope(count, timbre)):
        samples[index] *= loudness
    return samples


def _envelope(count: int, timbre: _Timbre) -> Iterable[float]:
    attack = max(1, min(round(timbre.attack * RATE), count // 4))
    release = max(1, min(round(timbre.release * RATE), count // 4))
    for index in range(count):
        yield min(1, index / attack, (count - index) / release) * math.exp(-index / RATE / timbre.decay)
