"""`[describe]`: a model that describes what another one cannot take."""

import re
from typing import Annotated, Literal

from pydantic import Field, model_validator

from gateway.config.section import Section
from gateway.config.setting_types import Seconds

DescribedKind = Literal["image", "audio"]


class DescribeModel(Section):
    """A model API for descriptions: an OpenAI-compatible one (`openai_chat`) or Anthropic's (`anthropic_messages`)."""

    api: Literal["openai_chat", "anthropic_messages"] = "openai_chat"
    """The format of its requests."""
    url: str | None = None
    """Its base url, such as `https://api.openai.com/v1` or `https://api.anthropic.com`; omitted: not used."""
    model: str = ""
    """The model's name."""
    api_key: str | None = None
    """The API key, such as `${OPENAI_API_KEY}`; sent to the url only."""

    @model_validator(mode="after")
    def _can_be_asked(self) -> "DescribeModel":
        if self.url is None:
            return self
        if not re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", self.url):
            raise ValueError("give the base url of the model API: http:// or https://, no user, no query")
        if not self.model:
            raise ValueError("name the model")
        return self


class DescribeSettings(Section):
    """Descriptions of images and sounds in words, for hosts and models that cannot take them. Off by default.

    Set `command`, `tool`, or the `url` of a `model`: content that tools returned is sent to it.
    """

    command: tuple[str, ...] = ()
    """A program and its arguments: bytes on stdin, their type in `$MCP_GATEWAY_MEDIA_TYPE`, the words on stdout."""
    tool: str | None = None
    """A tool of an upstream, as `<upstream>__<tool>`, whose text is the description."""
    arguments: dict[str, str] = Field(default_factory=lambda: {"image": "{uri}"})
    """Its arguments: `{uri}` is a data URI, `{data}` the base64, `{type}` the media type, `{prompt}` the prompt."""
    model: DescribeModel = DescribeModel()
    kinds: tuple[DescribedKind, ...] = ("image",)
    """The kinds of media to describe: `image`, `audio`."""
    prompt: str = "Describe this precisely for someone who cannot perceive it. Quote all text in it. No introduction."
    """The prompt for the model."""
    timeout: Seconds = 30.0
    """Seconds for one description."""
    max_chars: Annotated[int, Field(ge=40, le=100_000)] = 2_000
    """Maximum length of a description; longer ones are cut."""
    at_once: Annotated[int, Field(ge=1, le=64)] = 2
    """Maximum number of concurrent descriptions."""
    remembered: Annotated[int, Field(ge=0, le=100_000)] = 1_000
    """Maximum number of descriptions remembered, by content."""

    @model_validator(mode="after")
    def _one_way(self) -> "DescribeSettings":
        if sum(map(bool, (self.command, self.tool, self.model.url))) > 1:
            raise ValueError("give one of command, tool and model.url")
        if self.tool is not None and "__" not in self.tool.strip("_"):
            raise ValueError("give tool as <upstream>__<tool>")
        return self
