"""Run the daylight server over stdio."""

from .server import main

if __name__ == "__main__":
    main()
