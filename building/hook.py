"""Build hook of wheels: with UNLESS_EXTENSION=1 they carry machine code, and need no numba."""

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILER = "numba>=0.61"
# What `numba.pycc` calls the C compiler by.
BUILDER = "setuptools>=75"


class ExtensionHook(BuildHookInterface):
    """Compiles extensions into a temporary folder, so that none is ever left beside newer sources."""

    def dependencies(self) -> list[str]:
        """Return what a build from the sources needs, with an environment of its own."""
        return [COMPILER, BUILDER] if _is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the extensions to the wheel; a wheel without one needs the compiler at run time."""
        if version == "editable" or not _is_wanted():
            build_data["dependencies"].append(COMPILER)
            return
        self._folder = tempfile.TemporaryDirectory()
        environment = {**os.environ, "PYTHONPATH": str(Path(self.root, "src"))}
        command = [sys.executable, "-m", "building.extension", self._folder.name]
        for more in ([], ["wide"]) if platform.machine() in ("x86_64", "AMD64") else ([],):
            subprocess.run([*command, *more], cwd=self.root, env=environment, check=True)
        for file in Path(self._folder.name).iterdir():
            build_data["force_include"][str(file)] = f"unless/kernels/{file.name}"
        build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, *_: Any) -> None:
        """Remove the temporary folder."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def _is_wanted() -> bool:
    return os.environ.get("UNLESS_EXTENSION") == "1"
