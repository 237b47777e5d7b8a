"""What a calibration needs of the media room."""

from typing import Protocol

from gateway.core.model.effects import Fitted, ImageTarget


class Painter(Protocol):
    """What rasterizes the SVG (`gateway.content.media`). Raises MediaError."""

    async def fit_image(self, content: bytes, media_type: str, target: ImageTarget) -> Fitted: ...
