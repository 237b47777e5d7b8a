"""Open the configured describer."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import PurePath

import httpx2

from gateway.config.describe_settings import DescribeSettings
from gateway.content.describe.commands import describe_with_command
from gateway.content.describe.describer import Describer
from gateway.content.describe.tools import CallTool, ToolCaller, describe_with_tool
from gateway.core.model.effects import MediaWork
from gateway.system.tls import HOOKS, ssl_context


@asynccontextmanager
async def open_describer(
    settings: DescribeSettings, media: MediaWork, call_tool: CallTool
) -> AsyncGenerator[Describer | None]:
    """Provide the configured describer while the context is open; None if none is configured.

    `media` fits content to the describer; `call_tool` is used if the describer is a tool and no caller is known.
    """
    if settings.model.url is not None:
        async with httpx2.AsyncClient(timeout=settings.timeout, verify=ssl_context(), event_hooks=HOOKS) as client:
            yield _with_model(settings, media, client)
    elif settings.command:
        yield _with_command(settings)
    elif settings.tool is not None:
        yield _with_tool(settings, settings.tool, media, call_tool)
    else:
        yield None


def _with_model(settings: DescribeSettings, media: MediaWork, client: httpx2.AsyncClient) -> Describer:
    # Imported only now: it brings the model APIs, which most gateways never need.
    from gateway.content.describe.models import describe_with_model

    async def describe(content: bytes, media_type: str, _: ToolCaller | None) -> str:
        return await describe_with_model(client, settings.model, settings.prompt, media, content, media_type)

    return Describer(describe, settings.model.model, settings)


def _with_command(settings: DescribeSettings) -> Describer:
    async def describe(content: bytes, media_type: str, _: ToolCaller | None) -> str:
        return await describe_with_command(settings.command, content, media_type)

    return Describer(describe, PurePath(settings.command[0]).name, settings)


def _with_tool(settings: DescribeSettings, tool: str, media: MediaWork, call_tool: CallTool) -> Describer:
    async def describe(content: bytes, media_type: str, tools: ToolCaller | None) -> str:
        call = call_tool if tools is None else tools.call
        return await describe_with_tool(call, tool, settings.arguments, settings.prompt, media, content, media_type)

    return Describer(describe, tool, settings, by_caller=True)
