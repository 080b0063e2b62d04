"""engine phase."""
