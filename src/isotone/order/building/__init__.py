"""Orders from descriptions, from other orders and at random."""
