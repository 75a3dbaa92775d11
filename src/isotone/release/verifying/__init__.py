"""What a stranger can check of a release, and signatures."""
