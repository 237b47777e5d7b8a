"""The simulated hosts, by name. Most are named as the profile is that they should be given; the others are further
faces of a host, by version, model API or setting."""

from collections.abc import Mapping
from types import MappingProxyType

from gateway.hosts.simulators.ag2 import AG2, AG2_MEDIA
from gateway.hosts.simulators.agno import AGNO, AGNO_AUDIO, AGNO_RESPONSES
from gateway.hosts.simulators.ai_sdk import AI_SDK, AI_SDK_CHAT, AI_SDK_GOOGLE, AI_SDK_GOOGLE_3
from gateway.hosts.simulators.autogen import AUTOGEN, AUTOGEN_TOOLS
from gateway.hosts.simulators.claude_code import CLAUDE_CODE, CLAUDE_CODE_2_1_197
from gateway.hosts.simulators.claude_desktop import CLAUDE_DESKTOP
from gateway.hosts.simulators.cline import CLINE
from gateway.hosts.simulators.codex import CODEX
from gateway.hosts.simulators.crewai import CREWAI, CREWAI_ADAPTER
from gateway.hosts.simulators.data_designer import DATA_DESIGNER
from gateway.hosts.simulators.gemini_cli import GEMINI_CLI
from gateway.hosts.simulators.google_adk import GOOGLE_ADK
from gateway.hosts.simulators.host import Host
from gateway.hosts.simulators.inspector import INSPECTOR
from gateway.hosts.simulators.langchain import LANGCHAIN
from gateway.hosts.simulators.llama_index import LLAMA_INDEX
from gateway.hosts.simulators.openai_agents import OPENAI_AGENTS, OPENAI_AGENTS_CHAT, OPENAI_AGENTS_STRUCTURED, UNKNOWN
from gateway.hosts.simulators.opencode import OPENCODE, OPENCODE_COMPAT
from gateway.hosts.simulators.pydantic_ai import PYDANTIC_AI, PYDANTIC_AI_CHAT, PYDANTIC_AI_GOOGLE, PYDANTIC_AI_GOOGLE_3
from gateway.hosts.simulators.qwen_code import QWEN_CODE, QWEN_CODE_ANTHROPIC, QWEN_CODE_TEXT
from gateway.hosts.simulators.smolagents import SMOLAGENTS, SMOLAGENTS_STRUCTURED
from gateway.hosts.simulators.strands import STRANDS, STRANDS_CHAT

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
    CREWAI,
    CREWAI_ADAPTER,
    AUTOGEN,
    AUTOGEN_TOOLS,
    AG2,
    AG2_MEDIA,
    LLAMA_INDEX,
    AGNO,
    AGNO_AUDIO,
    AGNO_RESPONSES,
)

SIMULATORS: Mapping[str, Host] = MappingProxyType({host.name: host for host in (*FIRST, *_OTHERS)})
"""Every simulated host. `unknown` is the one that the gateway serves with its `default` profile."""
