"""The settings of the registry of MCP servers: `[registry]`."""

from typing import Annotated

from pydantic import Field

from gateway.config.base_url import BASE_URL
from gateway.config.section import Section
from gateway.core.model.quantities import Duration

OFFICIAL_REGISTRY = "https://registry.modelcontextprotocol.io"


class RegistrySettings(Section):
    """The registry of MCP servers that `search`, `add`, `update` and the console look into."""

    url: Annotated[str, Field(pattern=BASE_URL)] = OFFICIAL_REGISTRY
    """Its base URL, of the official registry or of another with the same API (`/v0.1/servers`)."""
    cache: Annotated[Duration, Field(ge=0, le=30 * 86_400)] = 3_600.0
    """Seconds for which an answer is used without asking again. Older ones are used if the registry does not answer."""
    timeout: Annotated[Duration, Field(gt=0, le=600)] = 20.0
    """Seconds for a whole search, or for one entry."""
