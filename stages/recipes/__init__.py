"""Recipes, a file each."""
