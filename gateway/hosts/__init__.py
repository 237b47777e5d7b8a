"""Everything known of hosts: profiles with evidence, simulators, their configuration files."""
