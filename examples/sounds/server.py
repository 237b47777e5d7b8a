"""The sounds server: audio blocks with a text beside them, the picture of a sound, and a listing.

It speaks the older HTTP+SSE transport, which many servers still offer: results come as events of one long stream.
Clients limit the size of an event, often to 1 MiB, so a server like this one keeps its results small.
"""

from base64 import b64encode
from collections.abc import Iterable
from typing import Annotated, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import AudioContent, CallToolResult, ImageContent, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

from ..serving import serve
from . import music, synthesis
from .music import BadMusic, Tone
from .synthesis import Instrument

PORT = 8702

server = MCPServer(
    "sounds",
    title="Tones, chords and melodies",
    version="1.0.0",
    instructions=(
        "Makes sounds as WAV files, 15 seconds at most: single tones, chords, melodies. Every tool works without "
        "arguments; list_sounds tells what can be chosen."
    ),
    log_level="WARNING",
)

PURE = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
"""Annotations of every tool here: it changes nothing, is repeatable, and reaches nothing outside."""

Note = Annotated[str, Field(max_length=20, description="Letter, # or b if needed, octave: A4, C#5, Eb3.")]
Seconds = Annotated[float, Field(ge=0.05, le=synthesis.LONGEST, description="How long it lasts, in seconds.")]
Sound = Annotated[Instrument, Field(description="How it sounds: `sine`, `organ`, `bell` or `strings`.")]
ChordKind = Literal["major", "minor", "diminished", "augmented", "seventh", "major seventh", "minor seventh"]
Kind = Annotated[ChordKind, Field(description="The kind of chord.")]
Notes = Annotated[
    str,
    Field(
        max_length=2_000,
        description=(
            "A melody of your own: notes with spaces between, R for a rest, beats after a colon: `C4 E4 G4:2 R C5:0.5`."
        ),
    ),
]
Tune = Literal["ode-to-joy", "frere-jacques", "greensleeves", "westminster"]
Melody = Annotated[Tune, Field(description="A bundled melody, if no notes are given.")]
Tempo = Annotated[int, Field(ge=0, le=400, description="Beats in a minute; 0 for what suits the melody, or 120.")]


def play(tones: Iterable[Tone], instrument: Instrument, about: str) -> CallToolResult:
    """Return a text, which is all that most models get of a sound, and an audio block."""
    try:
        samples = synthesis.synthesise(tones, instrument)
    except BadMusic as error:
        raise ToolError(str(error)) from error
    facts = f"{len(samples) / synthesis.RATE:.2f} s, {instrument}, WAV, mono, 16 bit, {synthesis.RATE:,} Hz"
    file = b64encode(synthesis.wav(samples)).decode("ascii")
    return CallToolResult(
        content=[
            TextContent(type="text", text=f"{about}: {facts}"),
            AudioContent(type="audio", data=file, mime_type="audio/wav"),
        ]
    )


def chosen_melody(melody: Tune, notes: str, tempo: int) -> tuple[str, tuple[Tone, ...]]:
    """The name and the tones of a bundled melody, or of notes. What cannot be played is a ToolError that says why."""
    tune = music.MELODIES[melody]
    beats = tempo or (120 if notes else tune.tempo)
    try:
        tones = music.parse(notes or tune.notes, beats)
    except BadMusic as error:
        raise ToolError(str(error)) from error
    return ("Melody" if notes else tune.title), tones


@server.tool(title="Play a tone", annotations=PURE)
def play_tone(note: Note = "A4", seconds: Seconds = 1.0, instrument: Sound = "bell") -> CallToolResult:
    """Make a single tone as a WAV file, with its frequency in words."""
    try:
        hertz = music.frequency(note)
    except BadMusic as error:
        raise ToolError(str(error)) from error
    return play((Tone((hertz,), seconds),), instrument, f"{note}, {hertz:.1f} Hz")


@server.tool(title="Play a chord", annotations=PURE)
def play_chord(
    root: Note = "C4", kind: Kind = "major", seconds: Seconds = 2.0, instrument: Sound = "organ"
) -> CallToolResult:
    """Make a chord as a WAV file, with the frequencies of its notes in words."""
    try:
        pitches = music.chord(root, kind)
    except BadMusic as error:
        raise ToolError(str(error)) from error
    written = ", ".join(f"{pitch:.1f}" for pitch in pitches)
    return play((Tone(pitches, seconds),), instrument, f"{root} {kind} ({written} Hz)")


@server.tool(title="Play a melody", annotations=PURE)
def play_melody(
    melody: Melody = "ode-to-joy", notes: Notes = "", tempo: Tempo = 0, instrument: Sound = "strings"
) -> CallToolResult:
    """Make a melody as a WAV file: a bundled one, or notes of your own."""
    about, tones = chosen_melody(melody, notes, tempo)
    return play(tones, instrument, f"{about}, {len(tones)} notes")


@server.tool(title="Draw a waveform", annotations=PURE)
def waveform(
    melody: Melody = "westminster", notes: Notes = "", tempo: Tempo = 0, instrument: Sound = "bell"
) -> CallToolResult:
    """Draw a melody, or a single note given as `notes`, as a picture of its waves: for those who cannot hear it."""
    about, tones = chosen_melody(melody, notes, tempo)
    try:
        samples = synthesis.synthesise(tones, instrument)
    except BadMusic as error:
        raise ToolError(str(error)) from error
    # Pillow takes its time to import, and is needed here only.
    from .drawing import draw_waveform

    picture = b64encode(draw_waveform(samples, f"{about}, {instrument}")).decode("ascii")
    return CallToolResult(content=[ImageContent(type="image", data=picture, mime_type="image/png")])


class MelodyFacts(BaseModel):
    """A bundled melody."""

    name: str
    title: str
    notes: str
    seconds: float


class Sounds(BaseModel):
    """What can be chosen."""

    instruments: tuple[str, ...]
    chords: tuple[str, ...]
    melodies: tuple[MelodyFacts, ...]


@server.tool(title="List what can be played", annotations=PURE)
def list_sounds() -> Sounds:
    """The instruments, chords and melodies: structured content, and the same as JSON in a text block."""
    melodies = tuple(
        MelodyFacts(
            name=name,
            title=tune.title,
            notes=tune.notes,
            seconds=round(sum(tone.seconds for tone in music.parse(tune.notes, tune.tempo)), 2),
        )
        for name, tune in music.MELODIES.items()
    )
    return Sounds(instruments=tuple(synthesis.TIMBRES), chords=tuple(music.CHORDS), melodies=melodies)


def main() -> None:
    """Serve over HTTP+SSE at /sse until interrupted."""
    serve("sounds", "/sse", PORT, lambda host: server.sse_app(host=host))
