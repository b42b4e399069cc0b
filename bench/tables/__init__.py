"""Train on synthetic, test on real, for any table: every method side by side in one run, one split, one set of metrics."""
