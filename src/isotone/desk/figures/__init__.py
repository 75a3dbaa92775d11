"""Numbers and pictures that the screens show. All come from the library."""
