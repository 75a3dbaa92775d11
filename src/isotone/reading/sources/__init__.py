"""Files, tables and connections, each opened as one lazy frame."""
