"""Description of a trial's host, counters of the host and the GPU, and energy of the measured device."""
