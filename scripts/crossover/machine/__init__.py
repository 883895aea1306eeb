"""What there is: devices, GPUs, cores, nodes, the lease of a GPU, and this code."""
