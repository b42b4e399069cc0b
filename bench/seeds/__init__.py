"""All generators of the documents that the project began from, side by side."""
