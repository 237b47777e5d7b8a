"""What the stand-ins say beside the model: how many tokens a request has."""

from lab.cases import photo, picture
from lab.host_models import counted_tokens


def test_a_picture_counts_by_its_pixels_not_by_its_base64() -> None:
    small, large = (_counted(picture("PNG", seed=1, size=size)) for size in ((96, 64), (1200, 900)))
    assert small < 50
    assert 1440 <= large < 1500
    assert 16_000 <= _counted(photo(), "image/jpeg") < 16_100


def test_text_counts_by_its_length_and_what_is_no_picture_too() -> None:
    assert 250 <= counted_tokens({"messages": [{"role": "user", "content": "x" * 1_000}]}) < 300
    assert 250 <= _counted("x" * 1_000) < 300


def _counted(data: str, media_type: str = "image/png") -> int:
    source = {"type": "base64", "media_type": media_type, "data": data}
    return counted_tokens({"messages": [{"role": "user", "content": [{"type": "image", "source": source}]}]})
