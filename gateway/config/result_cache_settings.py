"""The table `[result_cache]`: results of read-only tools that are kept for equal calls."""

from typing import Annotated

from pydantic import Field

from gateway.config.section import Section
from gateway.core.model.quantities import Size


class ResultCacheSettings(Section):
    """Results that are kept for equal calls of the tools in `[upstreams.NAME.tools] cache`: docs/result-cache.md."""

    max_bytes: Annotated[Size, Field(gt=0)] = 64 * 1024 * 1024
    """Maximum size of all results together; above it, those of the principal with the most make way."""
    max_result_bytes: Annotated[Size, Field(gt=0)] = 4 * 1024 * 1024
    """Maximum size of one result; a larger one is not kept."""
