"""The colour of one point of a picture."""

from PIL import Image


def colour_at(image: Image.Image, x: int, y: int) -> tuple[int, ...]:
    """Every band of the picture at this point."""
    colour = image.getpixel((x, y))
    assert isinstance(colour, tuple)
    return colour
