"""What is kept on disk: results whole or not at all, scratch files, texts in the user's cache."""
