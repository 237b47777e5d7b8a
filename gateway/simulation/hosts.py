"""The simulated hosts, by name. Most are named as the profile is that they should be given; the others are further
faces of a host, by version, model API or setting."""

from collections.abc import Mapping
from types import MappingProxyType

from gateway.simulation.ai_sdk import AI_SDK, AI_SDK_CHAT, AI_SDK_GOOGLE, AI_SDK_GOOGLE_3
from gateway.simulation.claude_code import CLAUDE_CODE, CLAUDE_CODE_2_1_197
from gateway.simulation.claude_desktop import CLAUDE_DESKTOP
from gateway.simulation.cline import CLINE
from gateway.simulation.codex import CODEX
from gateway.simulation.data_designer import DATA_DESIGNER
from gateway.simulation.gemini_cli import GEMINI_CLI
from gateway.simulation.google_adk import GOOGLE_ADK
from gateway.simulation.host import Host
from gateway.simulation.inspector import INSPECTOR
from gateway.simulation.langchain import LANGCHAIN
from gateway.simulation.openai_agents import OPENAI_AGENTS, OPENAI_AGENTS_CHAT, OPENAI_AGENTS_STRUCTURED, UNKNOWN
from gateway.simulation.opencode import OPENCODE, OPENCODE_COMPAT
from gateway.simulation.pydantic_ai import (
    PYDANTIC_AI,
    PYDANTIC_AI_CHAT,
    PYDANTIC_AI_GOOGLE,
    PYDANTIC_AI_GOOGLE_3,
)
from gateway.simulation.qwen_code import QWEN_CODE, QWEN_CODE_ANTHROPIC, QWEN_CODE_TEXT
from gateway.simulation.smolagents import SMOLAGENTS, SMOLAGENTS_STRUCTURED
from gateway.simulation.strands import STRANDS, STRANDS_CHAT

FIRST: tuple[Host, ...] = (CLAUDE_CODE, CLAUDE_DESKTOP, CODEX, GEMINI_CLI, CLINE, UNKNOWN, INSPECTOR)
"""Those that are looked at where nobody names any: every way of treating a result that is known is among them."""

_OTHERS = (
    CLAUDE_CODE_2_1_197,
    OPENCODE,
    OPENCODE_COMPAT,
    QWEN_CODE,
    QWEN_CODE_ANTHROPIC,
    QWEN_CODE_TEXT,
    OPENAI_AGENTS,
    OPENAI_AGENTS_STRUCTURED,
    OPENAI_AGENTS_CHAT,
    LANGCHAIN,
    PYDANTIC_AI,
    PYDANTIC_AI_CHAT,
    PYDANTIC_AI_GOOGLE,
    PYDANTIC_AI_GOOGLE_3,
    GOOGLE_ADK,
    STRANDS,
    STRANDS_CHAT,
    AI_SDK,
    AI_SDK_CHAT,
    AI_SDK_GOOGLE,
    AI_SDK_GOOGLE_3,
    SMOLAGENTS,
    SMOLAGENTS_STRUCTURED,
    DATA_DESIGNER,
)

SIMULATORS: Mapping[str, Host] = MappingProxyType({host.name: host for host in (*FIRST, *_OTHERS)})
"""Every simulated host. `unknown` is the one that the gateway serves with its `default` profile."""
