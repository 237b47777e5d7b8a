"""One gateway for all hosts of a user on stdio: the gateway's side, and the relay that each host starts."""
