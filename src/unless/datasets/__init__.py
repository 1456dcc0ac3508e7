"""Small classical tables and synthetic ones with a known truth. Imports formats and below."""
