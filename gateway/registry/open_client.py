"""Opening the client of the registry that a configuration names."""

import os
from collections.abc import Mapping
from pathlib import Path

from gateway.config.documents import read_document
from gateway.config.expansion import expand
from gateway.config.find_config import cache_folder, find_file
from gateway.config.problems import config_error
from gateway.config.registry_settings import RegistrySettings
from gateway.config.validation import validate
from gateway.core.model.json_values import as_object
from gateway.errors import ConfigFileMissing
from gateway.registry.cache import AnswerCache
from gateway.registry.client import RegistryClient


def open_registry(settings: RegistrySettings, environ: Mapping[str, str] = os.environ) -> RegistryClient:
    """Return the client of a registry. Without a folder for caches, nothing is kept."""
    folder = cache_folder(environ)
    kept = Path(os.devnull) if folder is None else folder
    return RegistryClient(settings, AnswerCache(kept / "registry"))


def registry_settings(config: Path | None) -> RegistrySettings:
    """Return `[registry]` of the configuration in force, whether or not the rest of it can be used.

    Raises:
        ConfigError: the file cannot be read, or the table is invalid.
    """
    found = find_file(config, environ=os.environ)
    if found is None or found.suffix.lower() == ".json":
        return RegistrySettings()
    try:
        document = read_document(found)
    except ConfigFileMissing:
        return RegistrySettings()
    expanded, problems = expand({"registry": as_object(document.get("registry"))}, os.environ)
    settings, invalid = validate(RegistrySettings, expanded["registry"])
    if settings is None or problems:
        raise config_error(f"{found}: registry", (*problems, *invalid))
    return settings
