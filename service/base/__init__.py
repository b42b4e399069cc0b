"""What every room stands on: typed errors, text from outside, lazy imports."""
