"""The client of Imprimatur."""
