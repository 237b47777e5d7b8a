"""Run the sounds server over HTTP+SSE."""

from .server import main

if __name__ == "__main__":
    main()
