"""What the platform's own programs and its integration tests share."""
