"""What noisy sums tell about a rising curve: the posterior of a hidden chain. All of it is post-processing."""
