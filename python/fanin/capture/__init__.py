"""What is read of a capture: its traffic, whether it is fit to judge by, who waits for whom, and what it measured itself."""
