"""Several gateways that serve together behind a load balancer: who is there, and whose sessions are where."""
