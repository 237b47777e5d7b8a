"""The settings of an upstream that is an HTTP API: which operations of its OpenAPI document are offered, and how."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.config.section import Section
from gateway.core.model.quantities import Duration, Size

OperationMethod = Literal["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]

READING: tuple[OperationMethod, ...] = ("GET", "HEAD")
"""The methods that change nothing (RFC 9110, section 9.2.1), as far as they are used here."""


class OperationSettings(Section):
    """Which operations of an OpenAPI document become tools. By default those that only read."""

    methods: tuple[OperationMethod, ...] = READING
    """Methods of the operations that are offered; the default only reads."""
    tags: tuple[str, ...] = ()
    """Tags of which an operation has to have one; omitted: any operation."""
    paths: tuple[str, ...] = ("*",)
    """Patterns of which the path has to match one: `["/pets/*"]`."""
    also: tuple[str, ...] = ()
    """Further operations, whatever their method, tags and path; also patterns: `["addPet", "POST /pets/*"]`."""
    query: dict[str, str] = Field(default_factory=dict[str, str])
    """Query parameters sent with every request, such as a key: `{ api_key = "${API_KEY}" }`."""
    max_document: Annotated[Size, Field(gt=0)] = 16 * 1024 * 1024
    """Maximum size of the document."""
    refresh: Annotated[Duration, Field(ge=0, le=86_400)] = 300.0
    """Seconds after which the document at a URL is looked at again; 0: never. A file is watched."""
