"""What a call through the gateway costs, beside other gateways, in one interleaved run: `make bench`."""
