"""The one-page report and the figures: all values of a page are gathered, then rendered."""
