"""Known mistakes, put back one at a time into a copy of the tree; the tests must turn red. See docs/pitfalls.md."""
