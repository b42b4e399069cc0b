"""What runs beside the API: the relay, the sweep, and the installation."""
