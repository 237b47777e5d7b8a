"""Sound made to fit and probed, in this process: what these tests give the decoders is what PyAV wrote."""

import struct
from io import BytesIO
from itertools import pairwise

import av
import pytest
from av.audio.resampler import AudioResampler

from gateway.content.media import convert_sound, decode_sound, sound
from gateway.content.media.convert_sound import Sound, convert
from gateway.content.media.probe_media import probe
from gateway.content.media.sound import Facts
from gateway.core.model.effects import AudioTarget
from gateway.core.model.media_types import inspect
from gateway.errors import MediaError
from tests.content.media.sound_files import ENCODED, encoded, video, wav

TYPES = sorted(ENCODED)
BOTH = ("audio/wav", "audio/mpeg")


@pytest.fixture(scope="module")
def tones() -> dict[str, bytes]:
    """Three seconds in every type."""
    return {media_type: encoded(media_type, 3.0) for media_type in TYPES}


def converted(content: bytes, media_type: str, target: AudioTarget) -> Sound:
    made = convert(content, media_type, target)
    assert not target.types or made.media_type in target.types
    assert inspect(made.content).media_type == made.media_type
    assert target.max_bytes is None or len(made.content) <= target.max_bytes
    assert target.max_seconds is None or heard(made.content, made.media_type) <= target.max_seconds + 0.001
    assert heard(made.content, made.media_type) == pytest.approx(made.seconds, abs=0.05)
    assert made.seconds <= made.original
    return made


def heard(content: bytes, media_type: str) -> float:
    """How many seconds a player plays."""
    with av.open(BytesIO(content), "r") as file:
        return sum(frame.samples / frame.sample_rate for frame in file.decode(audio=0))


def pitch(content: bytes) -> float:
    """The tone in Hz, by how often it crosses zero upwards."""
    with av.open(BytesIO(content), "r") as file:
        resampler = AudioResampler(format="s16", layout="mono", rate=16_000)
        data = b"".join(
            bytes(out.planes[0])[: out.samples * 2]
            for frame in file.decode(audio=0)
            for out in resampler.resample(frame)
        )
    values = struct.unpack(f"<{len(data) // 2}h", data)[4_000:-4_000]
    rises = sum(before < 0 <= after for before, after in pairwise(values))
    return rises / (len(values) / 16_000)


# ------------------------------------------------------------------------------------------------------- conversions


@pytest.mark.parametrize("media_type", BOTH)
@pytest.mark.parametrize("types", [BOTH, ()])
def test_what_is_taken_and_fits_comes_back_byte_for_byte(tones, media_type, types):
    content = tones[media_type]
    made = converted(content, media_type, AudioTarget(types, max_bytes=len(content), max_seconds=4))
    assert made.content == content
    assert made.seconds == made.original == pytest.approx(3, abs=0.05)


@pytest.mark.parametrize("media_type", TYPES)
@pytest.mark.parametrize("wanted", BOTH)
def test_every_type_becomes_wav_and_mp3_and_sounds_the_same(tones, media_type, wanted):
    made = converted(tones[media_type], media_type, AudioTarget((wanted,)))
    assert made.seconds == pytest.approx(3, abs=0.1)
    assert pitch(made.content) == pytest.approx(440, rel=0.02)


def test_what_has_no_loss_becomes_wav_and_what_has_becomes_mp3(tones):
    assert converted(tones["audio/flac"], "audio/flac", AudioTarget(BOTH)).media_type == "audio/wav"
    assert converted(tones["audio/ogg"], "audio/ogg", AudioTarget(BOTH)).media_type == "audio/mpeg"


def test_a_wav_that_would_be_large_becomes_mp3_where_that_is_taken(monkeypatch, tones):
    monkeypatch.setattr(convert_sound, "LARGE_WAV", 100_000)
    assert converted(tones["audio/flac"], "audio/flac", AudioTarget(BOTH)).media_type == "audio/mpeg"
    assert converted(tones["audio/flac"], "audio/flac", AudioTarget(("audio/wav",))).media_type == "audio/wav"


@pytest.mark.parametrize("media_type", TYPES)
@pytest.mark.parametrize("types", [BOTH, ("audio/wav",), ("audio/mpeg",)])
def test_over_long_sound_is_cut_and_says_so(tones, media_type, types):
    made = converted(tones[media_type], media_type, AudioTarget(types, max_seconds=1))
    assert made.seconds == pytest.approx(1, abs=0.15)
    assert made.original == pytest.approx(3, abs=0.1)


@pytest.mark.parametrize("media_type", TYPES)
@pytest.mark.parametrize("limit", [100_000, 30_000, 14_000])
def test_bytes_are_saved_by_quality_before_sound_is_cut(tones, media_type, limit):
    made = converted(tones[media_type], media_type, AudioTarget(BOTH, max_bytes=limit))
    # 32 kbit/s and a little more are what speech needs.
    assert made.seconds == pytest.approx(3, abs=0.1)


@pytest.mark.parametrize("media_type", TYPES)
def test_wav_alone_goes_down_to_one_channel_of_16_khz_before_it_is_cut(tones, media_type):
    whole = converted(tones[media_type], media_type, AudioTarget(("audio/wav",), max_bytes=110_000))
    assert sound.header_facts(whole.content, "audio/wav")[1:4] == ("pcm", 1, 16_000)
    assert whole.seconds == pytest.approx(3, abs=0.1)
    cut = converted(tones[media_type], media_type, AudioTarget(("audio/wav",), max_bytes=32_044))
    assert cut.seconds == pytest.approx(1, abs=0.01)


def test_both_limits_hold_at_once(tones):
    made = converted(tones["audio/flac"], "audio/flac", AudioTarget(BOTH, max_bytes=6_000, max_seconds=2))
    assert 0.5 < made.seconds < 2


def test_a_limit_that_no_sound_meets_is_an_error_that_names_it(tones):
    for media_type in TYPES:
        with pytest.raises(MediaError) as caught:
            convert(tones[media_type], media_type, AudioTarget(BOTH, max_bytes=300))
        assert "300 bytes" in str(caught.value)


def test_types_that_cannot_be_made_are_an_error_that_names_them(tones):
    with pytest.raises(MediaError) as caught:
        convert(tones["audio/wav"], "audio/wav", AudioTarget(("audio/midi",)))
    assert "audio/midi" in str(caught.value)


def test_a_type_by_another_name_is_taken_as_it_is(tones):
    assert convert(tones["audio/mpeg"], "audio/mpeg", AudioTarget(("audio/mp3",))).content == tones["audio/mpeg"]
    assert convert(tones["audio/mp4"], "audio/mp4", AudioTarget(("audio/x-m4a",))).content == tones["audio/mp4"]


def test_a_video_has_its_sound_converted_or_says_that_it_has_none():
    with pytest.raises(MediaError) as caught:
        convert(video(), "audio/mp4", AudioTarget(BOTH))
    assert "no sound" in str(caught.value)


def test_sound_that_breaks_off_is_kept_as_far_as_it_goes(tones):
    content = tones["audio/flac"]
    made = convert(content[: len(content) // 2], "audio/flac", AudioTarget(("audio/wav",)))
    assert 0.5 < made.seconds < 2.5


def test_equal_sound_gives_equal_bytes(tones):
    target = AudioTarget(("audio/mpeg",), max_bytes=20_000)
    assert convert(tones["audio/ogg"], "audio/ogg", target) == convert(tones["audio/ogg"], "audio/ogg", target)


def test_a_header_that_promises_little_does_not_make_the_limits_break():
    content = bytearray(wav(10, 8_000))
    content[28:32] = struct.pack("<I", 1_000_000)
    assert sound.header_facts(bytes(content), "audio/wav").seconds < 1
    made = convert(bytes(content), "audio/wav", AudioTarget(("audio/mpeg",), max_bytes=10_000, max_seconds=2))
    assert len(made.content) <= 10_000
    assert heard(made.content, made.media_type) <= 2.001


# ---------------------------------------------------------------------------------------------------------- what is


FACTS = {
    "audio/wav": Facts(3.0, "pcm", 2, 44_100),
    "audio/mpeg": Facts(3.0, "mp3", 2, 44_100),
    "audio/flac": Facts(3.0, "flac", 2, 44_100),
    "audio/ogg": Facts(3.0, "opus", 2, 48_000),
    "audio/mp4": Facts(3.0, "aac", 2, 44_100),
    "audio/webm": Facts(3.0, "opus", 2, 48_000),
    "audio/aac": Facts(3.0, "aac", 2, 44_100),
}


@pytest.mark.parametrize("media_type", TYPES)
def test_sound_is_known_by_its_headers(tones, media_type):
    known = probe(tones[media_type], media_type)
    assert known._replace(seconds=3.0) == FACTS[media_type]
    assert known.seconds == pytest.approx(3, abs=0.05)


@pytest.mark.parametrize("media_type", ["audio/wav", "audio/mpeg", "audio/flac", "audio/ogg"])
def test_the_headers_that_are_read_here_tell_what_ffmpeg_tells(tones, media_type):
    ours, theirs = (
        sound.header_facts(tones[media_type], media_type),
        decode_sound.container_facts(tones[media_type], media_type),
    )
    assert ours.seconds == pytest.approx(theirs.seconds, abs=0.05)
    assert ours[2:] == theirs[2:]


@pytest.mark.parametrize(
    ("container", "codec", "media_type"),
    [("mp4", "mpeg4", "video/mp4"), ("mov", "mpeg4", "video/quicktime"), ("webm", "libvpx", "video/webm")],
)
def test_video_is_known_by_its_length_and_its_pixels(container, codec, media_type):
    known = probe(video(container, codec), media_type)
    assert known.seconds == pytest.approx(2, abs=0.11)
    assert known.pixels == (64, 48)
    assert known.codec in ("mpeg4", "vp8", "libvpx")
    assert (known.channels, known.rate) == (None, None)


def test_a_wav_of_a_pipe_is_as_long_as_its_bytes():
    content = bytearray(wav(2))
    content[40:44] = b"\xff" * 4
    assert probe(bytes(content), "audio/wav") == Facts(2.0, "pcm", 1, 8_000)


def test_an_mp3_without_a_table_of_contents_is_measured_by_its_frames(tones):
    cut, seconds = sound.shorten_sound(tones["audio/mpeg"], "audio/mpeg", 2, 1e9) or (b"", 0)
    assert b"Xing" not in cut
    assert b"Info" not in cut
    assert probe(cut, "audio/mpeg").seconds == pytest.approx(seconds)
    assert heard(cut, "audio/mpeg") == pytest.approx(seconds, abs=0.03)


@pytest.mark.parametrize("media_type", [*TYPES, "video/mp4", "video/webm", "audio/midi", ""])
@pytest.mark.parametrize(
    "content", [b"", b"\0", b"RIFF", b"fLaC" + b"\0" * 90, b"OggS" * 9, b"\xff" * 5_000, b"ID3" * 9]
)
def test_what_cannot_be_told_is_not_told(media_type, content):
    assert probe(content, media_type).seconds in (None, 0.0)


# ---------------------------------------------------------------------------------------------- cut without decoding


def test_a_wav_is_cut_at_a_sample_without_being_decoded():
    content = wav(3, 8_000, 2)
    cut, seconds = sound.shorten_sound(content, "audio/wav", 1, 1e9) or (b"", 0)
    assert seconds == 1
    assert cut[44:] == content[44 : 44 + 8_000 * 4]
    assert len(sound.shorten_sound(content, "audio/wav", 9, 1_001)[0]) == 1_000


@pytest.mark.parametrize(("media_type", "content"), [("audio/flac", b"fLaC" * 99), ("audio/wav", b"RIFF" * 99)])
def test_what_cannot_be_cut_is_not(media_type, content):
    assert sound.shorten_sound(content, media_type, 1, 1e9) is None


def test_a_wav_of_blocks_that_depend_on_each_other_is_not_cut():
    content = bytearray(wav(3))
    content[20:22] = b"\x11\0"
    assert sound.shorten_sound(bytes(content), "audio/wav", 1, 1e9) is None
