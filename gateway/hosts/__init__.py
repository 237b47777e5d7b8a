"""Everything known about hosts: profiles with evidence, simulators, configuration files."""
