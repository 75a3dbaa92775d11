"""Where the rows of a ledger are kept, and the locks around them."""
