"""Published generators of tables."""
