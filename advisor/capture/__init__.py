"""capture phase."""
