"""`gswgan`: discriminators on disjoint parts, trained without noise; a step releases a noisy slope of one of them."""
