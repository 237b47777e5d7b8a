"""The settings of a server of embeddings: `[tool_search.embeddings]`."""

from typing import Annotated

from pydantic import Field

from gateway.config.base_url import BASE_URL
from gateway.config.section import Section
from gateway.core.model.quantities import Duration


class EmbeddingsSettings(Section):
    """A server with an API like OpenAI's (`POST <url>/embeddings`): Ollama, vLLM, LiteLLM, LM Studio, OpenAI."""

    url: Annotated[str, Field(pattern=BASE_URL)]
    """Its base URL, such as `http://127.0.0.1:11434/v1`. It is sent what models read of tools, and their queries."""
    model: Annotated[str, Field(min_length=1, max_length=200)]
    """The model that it is asked for."""
    api_key: str = ""
    """The key that is sent as `Authorization: Bearer`."""
    timeout: Annotated[Duration, Field(gt=0, le=600)] = 10.0
    """Seconds for all that one search has to ask. After that, tools are found by their words alone."""
