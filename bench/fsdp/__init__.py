"""FSDP (Zhou, Qian 2022) at honest prices: a private classifier on the service's own private step."""
