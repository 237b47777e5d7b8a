"""Notes, chords and melodies: what they are called, how high they are, how long they last."""

import re
from dataclasses import dataclass

_NOTE = re.compile(r"([A-Ga-g])([#b♯♭]?)(-?\d)")
_STEPS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
_SHIFTS = {"": 0, "#": 1, "♯": 1, "b": -1, "♭": -1}
LOWEST, HIGHEST = 27.5, 4_186.1
"""The ends of a piano, in hertz."""

CHORDS = {
    "major": (0, 4, 7),
    "minor": (0, 3, 7),
    "diminished": (0, 3, 6),
    "augmented": (0, 4, 8),
    "seventh": (0, 4, 7, 10),
    "major seventh": (0, 4, 7, 11),
    "minor seventh": (0, 3, 7, 10),
}
"""The notes of each kind of chord, in half tones above the lowest."""


class BadMusic(ValueError):
    """Something that cannot be played; the message says what is wrong and what would do."""


@dataclass(frozen=True)
class Tone:
    """A sound of one or more frequencies in hertz (none: silence), for a time in seconds."""

    frequencies: tuple[float, ...]
    seconds: float


@dataclass(frozen=True)
class Melody:
    """A tune in the notation of `parse`, with the beats of a minute."""

    title: str
    notes: str
    tempo: int


MELODIES = {
    "ode-to-joy": Melody(
        "Ode to Joy (Beethoven, 1824)",
        "E4 E4 F4 G4 G4 F4 E4 D4 C4 C4 D4 E4 E4:1.5 D4:0.5 D4:2",
        132,
    ),
    "frere-jacques": Melody(
        "Frère Jacques (traditional)",
        "C4 D4 E4 C4 C4 D4 E4 C4 E4 F4 G4:2 E4 F4 G4:2",
        132,
    ),
    "greensleeves": Melody(
        "Greensleeves (traditional)",
        "A4 C5:2 D5 E5:1.5 F5:0.5 E5 D5:2 B4 G4:1.5 A4:0.5 B4 C5:2 A4 A4:1.5 G#4:0.5 A4 B4:2 G#4 E4:2",
        168,
    ),
    "westminster": Melody(
        "Westminster quarters (1793)",
        "E4 C4 D4 G3:2 R G3 D4 E4 C4:2",
        100,
    ),
}


def half_tones(note: str) -> int:
    """How far a note such as `A4`, `C#5` or `Eb3` lies above A4, in half tones. Raises BadMusic."""
    match = _NOTE.fullmatch(note.strip())
    if match is None:
        raise BadMusic(
            f"{note[:20]!r} is not a note: write a letter A to G, # or b if needed, and the octave: A4, C#5, Eb3"
        )
    letter, shift, octave = match.groups()
    return _STEPS[letter.upper()] + _SHIFTS[shift] + 12 * (int(octave) - 4) - 9


def frequency(note: str, above: int = 0) -> float:
    """The frequency of a note (some half tones above it) in hertz, A4 being 440. Raises BadMusic."""
    hertz = 440 * 2 ** ((half_tones(note) + above) / 12)
    if not LOWEST - 0.1 <= hertz <= HIGHEST:
        raise BadMusic(f"{note} is at {hertz:,.1f} Hz: stay between A0 and C8, the ends of a piano")
    return hertz


def chord(root: str, kind: str) -> tuple[float, ...]:
    """The frequencies of a chord on its lowest note. Raises BadMusic."""
    return tuple(frequency(root, above) for above in CHORDS[kind])


def parse(notes: str, tempo: int) -> tuple[Tone, ...]:
    """A melody from its notation: notes with spaces between, `R` for a rest, `:2` or `:0.5` after it for its beats.

    Raises BadMusic, naming the place.
    """
    tones: list[Tone] = []
    for place, word in enumerate(notes.split(), start=1):
        name, _, written = word.partition(":")
        try:
            beats = float(written or 1)
        except ValueError:
            beats = 0.0
        if not 0.1 <= beats <= 16:
            raise BadMusic(f"note {place}, {word[:20]!r}: the beats after the colon must be a number from 0.1 to 16")
        try:
            pitches = () if name in ("R", "r") else (frequency(name),)
        except BadMusic as error:
            raise BadMusic(f"note {place}: {error}") from error
        tones.append(Tone(pitches, beats * 60 / tempo))
    if not tones:
        raise BadMusic("there are no notes: write some with spaces between, such as `C4 E4 G4:2`")
    return tuple(tones)
