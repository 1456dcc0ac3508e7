"""Links, gates and sentences that the data bear out, from any structure. Imports datasets and below."""
