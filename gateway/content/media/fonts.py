"""Find fonts for text in vector graphics.

resvg expects the families Arial, Times New Roman and Courier New. If they are missing, as on most Linux machines, it
draws no text at all unless it is given other families. If there are no fonts at all (slim container images), Pillow's
built-in font is used, so the labels of a chart are never lost silently.
"""

import os
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "~/.local/share/fonts", "~/.fonts")
_MOST_FILES = 20_000

_SANS = {
    "arial.ttf": "Arial",
    "liberationsans-regular.ttf": "Liberation Sans",
    "notosans-regular.ttf": "Noto Sans",
    "dejavusans.ttf": "DejaVu Sans",
    "opensans-regular.ttf": "Open Sans",
    "freesans.ttf": "FreeSans",
    "roboto-regular.ttf": "Roboto",
    "cantarell-regular.otf": "Cantarell",
    "ubuntu-r.ttf": "Ubuntu",
}
_MONOSPACE = {
    "cour.ttf": "Courier New",
    "liberationmono-regular.ttf": "Liberation Mono",
    "notosansmono-regular.ttf": "Noto Sans Mono",
    "dejavusansmono.ttf": "DejaVu Sans Mono",
    "freemono.ttf": "FreeMono",
    "ubuntumono-r.ttf": "Ubuntu Mono",
}


class Fonts(NamedTuple):
    """The families for text whose own family is missing, and font files to load in addition to the system's.

    A family of None means that resvg's default is installed.
    """

    sans: str | None
    monospace: str | None
    files: list[str]


@cache
def fonts() -> Fonts:
    """Find the fonts of this machine, once per process."""
    if sys.platform in ("win32", "darwin"):
        return Fonts(None, None, [])
    names = _font_files()
    sans, monospace = _first(_SANS, names), _first(_MONOSPACE, names)
    if sans is not None:
        return Fonts(sans, monospace or sans, [])
    built_in = _built_in()
    return Fonts(built_in.sans, monospace or built_in.sans, built_in.files)


def _first(families: dict[str, str], names: frozenset[str]) -> str | None:
    return next((family for name, family in families.items() if name in names), None)


def _font_files() -> frozenset[str]:
    names: set[str] = set()
    for folder in _FOLDERS:
        for _, _, files in os.walk(Path(folder).expanduser()):
            names.update(name.lower() for name in files)
            if len(names) > _MOST_FILES:
                return frozenset(names)
    return frozenset(names)


def _built_in() -> Fonts:
    """Provide Pillow's own font as a file in memory: a file on disk would be left behind by a killed worker."""
    from PIL import ImageFont

    font = ImageFont.load_default(size=16)
    if not isinstance(font, ImageFont.FreeTypeFont) or not hasattr(os, "memfd_create"):
        return Fonts(None, None, [])
    file = os.memfd_create("font")
    os.write(file, font.font_bytes)
    # Never closed: it is loaded for each drawing as long as the worker lives.
    return Fonts(font.getname()[0], None, [f"/proc/self/fd/{file}"])
