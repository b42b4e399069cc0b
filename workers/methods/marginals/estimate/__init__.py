"""What the noisy counts say together. Post-processing."""
