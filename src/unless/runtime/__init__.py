"""What running needs and no statistics: whole files, locks, temporary folders, memory, child processes."""
