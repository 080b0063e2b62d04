"""fixes phase."""
