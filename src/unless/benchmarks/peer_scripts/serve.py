"""The peer's end of the line: for each request do the work once and answer with its cost as JSON."""

import json
import os
import sys
import time


def serve(about, work):
    """Answer requests until the line is closed; what the peer itself prints goes nowhere."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    print(json.dumps(about), file=answers, flush=True)
    for request in sys.stdin:
        cpu, wall = time.process_time(), time.perf_counter()
        result = work(request.strip())
        cost = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall, "result": result}
        print(json.dumps(cost), file=answers, flush=True)
