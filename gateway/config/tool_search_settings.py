"""The settings of tool search: `[tool_search]`."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from gateway.config.embeddings_settings import EmbeddingsSettings
from gateway.config.section import Section
from gateway.core.model.toolset_scope import SEPARATOR


class ToolSearchSettings(Section):
    """Tools that hosts find and call through two tools of the gateway, in place of a long list: docs/tools.md."""

    mode: Literal["never", "auto", "always"] = "never"
    """`auto`: if a host's list is longer than `above`, or has more tools than the host takes. A profile that has
    `tools.search` decides for its hosts: it is `never` for those that search their tools themselves.
    """
    above: Annotated[int, Field(gt=0)] = 10_000
    """Tokens of a list above which `auto` replaces it."""
    pinned: tuple[str, ...] = ()
    """Tools that stay listed: shell globs on `upstream__tool`, whatever name the tool is offered under."""

    embeddings: EmbeddingsSettings | None = None
    """A server of embeddings, by which tools are also found by what they mean: docs/tools.md."""

    @field_validator("pinned")
    @classmethod
    def _have_an_upstream(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            if not all(pattern.partition(SEPARATOR)):
                raise ValueError(f"{pattern!r} has no upstream: patterns are UPSTREAM__TOOL")
        return patterns
