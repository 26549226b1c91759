"""What the terminal shows: tables that fit it, progress bars, text from outside made harmless."""
