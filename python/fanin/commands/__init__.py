"""What is between a command's options and the functions that `import fanin` gives."""
