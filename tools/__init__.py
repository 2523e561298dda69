"""What is run about the project, not by it: its site, its release, its frozen names."""
