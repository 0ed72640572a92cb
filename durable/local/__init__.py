"""Everything on this machine: the emulator, the event sources of the functions, schedules and the HTTP front."""
