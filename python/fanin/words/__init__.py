"""What is said of results: numbers as people write them, why a response was slow, the verdict's sentences."""
