"""The one-page report and the figures: data, then build, then render. It asks other rooms, never computes."""
