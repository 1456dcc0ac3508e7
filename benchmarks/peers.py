"""Other people's packages, each in an environment of its own, measured inside a process of their own."""

import json
import os
import select
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from benchmarks.timing import Sample

SCRIPTS = Path(__file__).resolve().parent / "peer_scripts"
TIME_LIMIT = 600


class PeerError(Exception):
    """A peer cannot be installed or does not run here."""


def environments() -> Path:
    """Return where the environments of peers are: UNLESS_PEERS, else the user's cache folder."""
    if os.environ.get("UNLESS_PEERS"):
        return Path(os.environ["UNLESS_PEERS"]).resolve()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unless" / "peers"


def interpreter(package: str) -> str:
    """Return the interpreter of an environment that holds a package, installing it on first use."""
    if package == "unless":
        return sys.executable
    home = environments() / package
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = home / ".ready"
    if not ready.exists():
        print(f"Installing {package} into an environment of its own ...", file=sys.stderr, flush=True)
        venv.create(home, with_pip=True, clear=True)
        try:
            subprocess.run(
                [str(python), "-m", "pip", "install", "--quiet", package, "pandas"],
                check=True,
                text=True,
                capture_output=True,
                timeout=TIME_LIMIT,
            )
        except (subprocess.SubprocessError, OSError) as error:
            print(getattr(error, "stderr", None) or error, file=sys.stderr)
            raise PeerError(f"{package} could not be installed") from None
        ready.touch()
    return str(python)


class Peer:
    """A running peer that does its work once for every line it is sent, and answers with what it cost."""

    def __init__(self, package: str, script: str, *arguments: str) -> None:
        self.package = package
        command = [interpreter(package), str(SCRIPTS / script), *arguments]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=SCRIPTS,
        )
        self.about = self._receive()

    def ask(self, request: str = "run", time_limit: float | None = None) -> dict[str, Any]:
        """Send one request and return the answer of the peer; stop it after `time_limit` seconds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise PeerError(f"{self.package} stopped") from None
        if time_limit is not None and not select.select([self.process.stdout], [], [], time_limit)[0]:
            self.process.kill()
            raise PeerError(f"{self.package} was stopped after {time_limit:.0f} s")
        return self._receive()

    def sample(self) -> Sample:
        """Let the peer do its work once."""
        answer = self.ask()
        return Sample(answer["cpu"], answer["wall"])

    def _receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            _, errors = self.process.communicate()
            print(errors, file=sys.stderr)
            raise PeerError(f"{self.package} failed: {(errors.strip().splitlines() or ['?'])[-1][:80]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()
