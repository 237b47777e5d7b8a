"""Content for tool arguments: handles, data URIs and URLs are replaced by what the tool takes, for one call."""

from gateway.content.arguments.files import TemporaryFiles
from gateway.content.arguments.resolve_content import Arguments, Fetch, ways_of_giving

__all__ = ["Arguments", "Fetch", "TemporaryFiles", "ways_of_giving"]
