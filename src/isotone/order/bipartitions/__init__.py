"""Count and draw the extended bipartitions of an order."""
