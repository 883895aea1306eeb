"""The machine: devices, cores, load, cluster nodes, locks, and the hash of the code behind a result."""
