"""A mark of this process, in files by which it knows what it has written itself. Standard library only."""

import os

PROCESS_MARK = os.urandom(8).hex()
"""16 hexadecimal digits, others in each process."""
