"""The strongest rivals of each kind of release, each used at its best."""
