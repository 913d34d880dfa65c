"""What several stages share. These modules import torch and are imported inside functions."""
