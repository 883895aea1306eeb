"""Trials on several devices of one host, each with its own process: the ranks."""
