"""The code that the platform's programs and its integration tests share."""
