"""Files kept by the providers of model APIs: uploaded once, and then sent by their id."""

from gateway.content.provider_files.anthropic import AnthropicFiles
from gateway.content.provider_files.fal import FalStorage
from gateway.content.provider_files.gemini import GeminiFiles
from gateway.content.provider_files.openai import OpenAIFiles
from gateway.content.provider_files.provider import FetchedFile, FileHost
from gateway.content.provider_files.provider_files import ProviderFiles

__all__ = [
    "AnthropicFiles",
    "FalStorage",
    "FetchedFile",
    "FileHost",
    "GeminiFiles",
    "OpenAIFiles",
    "ProviderFiles",
]
