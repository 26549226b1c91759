"""What the process may take, and how it is stopped."""
