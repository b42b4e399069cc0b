"""Published generators of images."""
