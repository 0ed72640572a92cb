"""Programs that measure: requests and units against the budget, and time."""
