"""predict phase."""
