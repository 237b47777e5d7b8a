"""Models of the SDK whose validators are built when the first value is validated, in place of at their import.

`mcp_types` declares some five hundred pydantic models, of which a gateway uses a few dozen: building all of them takes
a tenth of a start (measured, SDK 2.3). pydantic's `defer_build` is a setting that models inherit, so it is set at the
root while `mcp_types` is imported, and only then. Such a model builds itself when it is first used.
"""

from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Final

PACKAGE: Final = "mcp_types"


class DeferringLoader(SourceFileLoader):
    """Loads a module with every model that it declares left unbuilt."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module."""
        from pydantic import BaseModel, ConfigDict

        before = BaseModel.model_config
        BaseModel.model_config = ConfigDict({**before, "defer_build": True})
        try:
            super().exec_module(module)
        finally:
            BaseModel.model_config = before
