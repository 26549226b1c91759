"""Pictures from frames and scenarios."""
