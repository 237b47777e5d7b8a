"""Whether a GIF is all there is told by its blocks, within a bound."""

import io
import random

from PIL import Image

from gateway.core.model.gif_blocks import ends_with_trailer


def moving() -> bytes:
    frames = [Image.frombytes("P", (64, 48), random.Random(seed).randbytes(64 * 48)) for seed in range(3)]
    written = io.BytesIO()
    frames[0].save(written, "GIF", save_all=True, append_images=frames[1:], comment=b";\0;" * 200)
    return written.getvalue()


def test_only_the_whole_has_its_trailer() -> None:
    whole = moving()
    assert whole.count(b"\0;") > 3
    assert [length for length in range(len(whole) + 1) if ends_with_trailer(whole[:length])] == [len(whole)]


def test_what_follows_the_trailer_does_not_matter() -> None:
    assert ends_with_trailer(moving() + b"anything")


def test_a_file_of_endless_small_blocks_is_given_up() -> None:
    screen = b"GIF89a" + bytes(7)
    assert ends_with_trailer(screen + b"\x21\xfe" + b"\1a" * 1_000 + b"\0;")
    assert not ends_with_trailer(screen + b"\x21\xfe" + b"\1a" * 200_000 + b"\0;")
    assert not ends_with_trailer(screen + b"\x21\xfe\0" * 200_000 + b";")
