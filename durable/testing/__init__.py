"""The test kit."""
