"""Content for the arguments of calls: handles, data URIs and URLs become what the tool asked for, for one call."""

from gateway.content.arguments.files import TemporaryFiles
from gateway.content.arguments.resolve_content import Arguments, Fetch, ways_of_giving

__all__ = ["Arguments", "Fetch", "TemporaryFiles", "ways_of_giving"]
