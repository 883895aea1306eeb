"""The machine: its devices, cores and load, a cluster's nodes, locks, and the hash of the code behind a result."""
