"""What happens when things go wrong: kills, full disks, hostile files, chains that do not mix."""
