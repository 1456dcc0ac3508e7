"""Styles, scripts and standing text of the page, as files; scripts are joined in the order of their names."""

from unless.report.assets.reading import asset as asset
from unless.report.assets.reading import script as script
