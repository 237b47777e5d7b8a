import os
import socket
import sys

import pytest

from gateway.system.peer_credentials import Peer, peer_of


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says the process too")
def test_the_system_says_who_is_at_the_other_end():
    here, there = socket.socketpair(socket.AF_UNIX)
    with here, there:
        assert peer_of(here) == Peer(os.geteuid(), os.getpid())


def test_a_port_has_no_user():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert peer_of(client) is None
