"""The ways that are compared: each a module with what a user would write, and a function `lower`."""
