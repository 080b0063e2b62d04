"""The machine: cores, cgroups, memory, accelerators, disk."""
