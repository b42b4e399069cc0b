"""`marginals`: measure, choose, measure, estimate, fit, sample."""
