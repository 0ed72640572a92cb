"""What is stored and sent: frozen values without I/O."""
