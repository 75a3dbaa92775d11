"""What noisy sums tell about a rising curve, by the posterior of a hidden chain. All of it is post-processing."""
