"""`python -m noslip`: the command line."""

from noslip.cli import main

main()
