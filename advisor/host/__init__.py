"""Facts about the machine: cores, cgroups, memory, accelerators, disk."""
