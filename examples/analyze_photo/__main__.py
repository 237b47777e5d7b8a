"""Run the analyze_photo server over stdio."""

import anyio

from .server import main

if __name__ == "__main__":
    anyio.run(main)
