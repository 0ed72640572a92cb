"""The operations of a workflow, one file each."""
