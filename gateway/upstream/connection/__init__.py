"""An upstream's connection: opened, kept, counted, and its sessions."""
