"""What a simulation finds."""


class Violation(AssertionError):
    """An invariant does not hold; the message begins with its number."""
