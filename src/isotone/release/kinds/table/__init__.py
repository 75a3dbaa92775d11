"""Tables, one count for each category."""
