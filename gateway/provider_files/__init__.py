"""Files that the providers of model APIs keep themselves: uploaded once, and then sent by their id."""

from gateway.provider_files.anthropic import AnthropicFiles
from gateway.provider_files.fal import FalStorage
from gateway.provider_files.gemini import GeminiFiles
from gateway.provider_files.hosts import FetchedFile, FileHost
from gateway.provider_files.openai import OpenAIFiles
from gateway.provider_files.provider_files import ProviderFiles

__all__ = [
    "AnthropicFiles",
    "FalStorage",
    "FetchedFile",
    "FileHost",
    "GeminiFiles",
    "OpenAIFiles",
    "ProviderFiles",
]
