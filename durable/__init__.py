"""Long-lived workflows on AWS Lambda, written as plain async functions."""
