"""Arguments that take bytes: found in a tool's schema, offered as handles, and filled in as the tool requires.

Pure: the content of a handle is looked up by `gateway.content.arguments`.
"""

from gateway.core.tools.arguments.content_forms import Content, built, place_content
from gateway.core.tools.arguments.find_parameters import FoundParameter, find_parameters, parameter_path
from gateway.core.tools.arguments.parameters import EVERYTHING, Form, Parameter, Place, PossibleForms, path_words
from gateway.core.tools.arguments.unknown_arguments import UnknownArgument, unknown_arguments
from gateway.core.tools.arguments.values import (
    DataUri,
    Handle,
    Reference,
    Url,
    WantedContent,
    unmarked_handles,
    wanted_contents,
)

__all__ = [
    "EVERYTHING",
    "Content",
    "DataUri",
    "Form",
    "FoundParameter",
    "Handle",
    "Parameter",
    "Place",
    "PossibleForms",
    "Reference",
    "UnknownArgument",
    "Url",
    "WantedContent",
    "built",
    "find_parameters",
    "parameter_path",
    "path_words",
    "place_content",
    "unknown_arguments",
    "unmarked_handles",
    "wanted_contents",
]
