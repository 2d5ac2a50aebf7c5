"""Where a release keeps what its own programs share."""
