"""Private distributions of counts. How many categories have count 0, 1, 2, and so on."""
