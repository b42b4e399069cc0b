"""A mixture of product distributions, fitted to the estimates. Post-processing."""
