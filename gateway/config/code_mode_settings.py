"""The table `[code_mode]`: scripts that call tools."""

from typing import Annotated

from pydantic import Field, field_validator

from gateway.config.section import Section
from gateway.core.model.quantities import Duration, Size
from gateway.core.model.toolset_scope import SEPARATOR


class CodeModeSettings(Section):
    """The tool `gateway_run`, with which a model calls tools from a script: docs/code-mode.md."""

    enabled: bool = False
    """Whether hosts are offered the tool. It needs the extra `code`."""
    tools: tuple[str, ...] = (f"*{SEPARATOR}*",)
    """Tools that scripts may call if they say that they only read (`readOnlyHint`): shell globs on `upstream__tool`."""
    may_change: tuple[str, ...] = ()
    """Tools that scripts may call though they do not say that they only read: patterns like those of `tools`."""
    run_time: Annotated[Duration, Field(gt=0, le=600)] = 10.0
    """Seconds for which the code of one script may run, without the calls that it waits for."""
    total_time: Annotated[Duration, Field(gt=0, le=3_600)] = 300.0
    """Seconds that one script may take, with its calls."""
    memory: Annotated[Size, Field(ge=16 * 1024 * 1024)] = 64 * 1024 * 1024
    """Maximum memory of one script."""
    max_calls: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Maximum number of tool calls of one script; a search with `find_tools` is one."""
    calls_at_once: Annotated[int, Field(ge=1, le=1_000)] = 8
    """Maximum number of calls of one script that run at the same time; more wait."""
    max_text: Annotated[Size, Field(ge=1_000)] = 64 * 1024
    """Maximum size of what one script prints."""
    max_shown: Annotated[Size, Field(ge=1_000)] = 32 * 1024 * 1024
    """Maximum size of what one script shows, before it is shaped for the host."""
    max_read: Annotated[Size, Field(ge=1)] = 1024 * 1024
    """Maximum size of one image, sound or file whose bytes a script reads."""
    scripts_at_once: Annotated[int, Field(ge=1, le=256)] = 4
    """Maximum number of scripts that run at the same time, of all hosts; more wait, and principals take turns.

    Half as many more are for principals whose scripts would all have to wait.
    """
    signature_tokens: Annotated[int, Field(ge=0, le=100_000)] = 2_000
    """Tokens of the signatures in the tool's description. Beyond that, scripts search with `find_tools`."""

    @field_validator("tools", "may_change")
    @classmethod
    def _have_an_upstream(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            if not all(pattern.partition(SEPARATOR)):
                raise ValueError(f"{pattern!r} has no upstream: patterns are UPSTREAM__TOOL")
        return patterns
