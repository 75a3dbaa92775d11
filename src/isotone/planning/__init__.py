"""Plans: mechanisms compared without data, and how a comparison is shown."""
