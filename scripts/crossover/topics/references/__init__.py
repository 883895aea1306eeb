"""Machines measured elsewhere beside this one."""
