"""What a gateway carries: hosts as they arrive, what their calls cost, and what a fleet of gateways would need."""
