"""The order of the phases of each command; the only modules that know it."""
