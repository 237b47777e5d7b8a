"""A program that is slow to start: `late_start.py COMMAND ARGS...`.

Nothing is read of it, and nothing runs, until its host has lost patience and sent `initialize` behind whatever it sent
before. Then the command finds all of that waiting on its stdin, as it would have had it taken that long to start.
"""

import os
import subprocess
import sys

waiting = []
for line in sys.stdin.buffer:
    waiting.append(line)
    if b'"initialize"' in line:
        break
with subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE) as program:
    assert program.stdin is not None
    program.stdin.write(b"".join(waiting))
    program.stdin.flush()
    while chunk := os.read(sys.stdin.fileno(), 65_536):
        program.stdin.write(chunk)
        program.stdin.flush()
    program.stdin.close()
sys.exit(program.returncode)
