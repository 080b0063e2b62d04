"""verify phase."""
