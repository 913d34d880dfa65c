"""Targets, a file for each family."""
