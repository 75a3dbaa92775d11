"""Reading private data: sources, values and records, by public rules alone."""
