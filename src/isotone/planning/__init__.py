"""Compare mechanisms without data, and show the comparison."""
