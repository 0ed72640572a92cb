"""The tests of the project; the folders below need no __init__.py."""
