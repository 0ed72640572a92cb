"""`python -m durable.cli` is `durable`."""

from durable.cli import main

main()
