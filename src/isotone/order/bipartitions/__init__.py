"""Extended bipartitions of an order: counting them and drawing them uniformly."""
