"""This machine: devices, GPUs, cores, nodes, locks, and the key of the code."""
