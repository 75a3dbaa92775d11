"""What a reader may conclude from published counts. Figures with intervals that hold, from public things alone."""
