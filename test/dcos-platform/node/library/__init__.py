"""The code that a release's own programs share."""
