"""report phase."""
