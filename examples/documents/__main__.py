"""Run the documents server over Streamable HTTP."""

from .server import main

if __name__ == "__main__":
    main()
