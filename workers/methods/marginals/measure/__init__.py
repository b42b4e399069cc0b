"""What is counted, and in which bins."""
