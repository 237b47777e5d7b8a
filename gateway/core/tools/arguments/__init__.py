"""Arguments that take bytes: found in a tool's schema, offered as handles, and put in the form that the tool asked for.

Pure: what a handle stands for is found out by `gateway.content.arguments`.
"""

from gateway.core.tools.arguments.building import Content, built, placed
from gateway.core.tools.arguments.finding import Found, find, parameter_path
from gateway.core.tools.arguments.parameters import EVERYTHING, Form, Giving, Parameter, Place, path_words
from gateway.core.tools.arguments.values import DataUri, Handle, Reference, Url, Wanted, wanted

__all__ = [
    "EVERYTHING",
    "Content",
    "DataUri",
    "Form",
    "Found",
    "Giving",
    "Handle",
    "Parameter",
    "Place",
    "Reference",
    "Url",
    "Wanted",
    "built",
    "find",
    "parameter_path",
    "path_words",
    "placed",
    "wanted",
]
