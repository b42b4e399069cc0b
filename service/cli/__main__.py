"""`python -m service.cli`, the same as `imprimatur`."""

from service.cli import main

main()
