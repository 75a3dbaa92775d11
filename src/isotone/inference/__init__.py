"""What a reader may conclude from published counts: figures with intervals that hold, from public things alone."""
