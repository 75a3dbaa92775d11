"""The search for a relaxed order whose tables can be built, and for the relations that rejection can restore."""
