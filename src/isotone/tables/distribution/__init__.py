"""Private distributions of counts: how many categories have count 0, 1, 2, and so on."""
