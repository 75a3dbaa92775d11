"""Read private data by public rules alone. Sources, values and records."""
