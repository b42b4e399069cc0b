"""`python -m imprimatur.cli`, the same as `imprimatur`."""

from imprimatur.cli import main

main()
