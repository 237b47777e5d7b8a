"""What the suite starts for each client: a program so small that its start costs nothing, for one that waits.

    python -I -S hand_over.py SOCKET MODULE ARGUMENT...

The clients import half of the gateway and all of the SDK, and a run starts a hundred of them: so one process
(`tests.conformance.waiting_clients`) has imported everything and forks for each. This gives it the arguments, the
environment and its own stdin, stdout and stderr, and ends as the fork does.
"""

import json
import os
import socket
import sys


def main() -> int:
    """Hand everything over, and return the exit code."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(sys.argv[1])
        asked = json.dumps({"module": sys.argv[2], "arguments": sys.argv[3:], "environment": dict(os.environ)}).encode()
        socket.send_fds(connection, [len(asked).to_bytes(8, "big")], [0, 1, 2])
        connection.sendall(asked)
        # Nothing comes if the fork was killed.
        ended = connection.recv(1)
    return ended[0] if ended else 1


if __name__ == "__main__":
    sys.exit(main())
