"""The application, what guards it, and the server on this machine."""
