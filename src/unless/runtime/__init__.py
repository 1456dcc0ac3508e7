"""Everything about running, and no statistics: arrays, files, threads, processes and kernels, but no Dataset.

What it promises to users of every learner:

- **Ctrl-C** ends the call within about a second. Searches call kernels for some milliseconds at a time and
  check a `CancelToken` between two calls; queries of the database and long kernels run in another thread, so
  that the main thread can be interrupted (`interrupts`). With `work_dir=` the error says what is kept there
  (`how_to_resume` in `checkpoints`). A shard that was sent to another process, and a kernel that cannot be
  stopped, run to their end, and what they return is dropped.
- **Resume.** With `work_dir=` finished parts are files in a `CheckpointStore`, stamped by the table, the
  learner and its settings; `resume=True` computes only what is missing and gives the same answer
  (`checkpoints`). A killed process leaves no file that looks whole and is not; what it leaves
  otherwise, the next run removes (`files`).
- **Memory.** Work is refused before it begins where an estimate of what it takes exceeds `max_memory=`; an
  allocation that fails anyway becomes one sentence (`memory`).
- **Workers.** `n_jobs=` and joblib's backend (threads, processes, a cluster) change the time and never the
  answer (`parallel`).
- **Progress.** A bar on a terminal or in a notebook, else nothing (`progress`).
- **Hostile input** is unpacked in a child process with limits (`child`); a pipe is read once (`files`).
- **Compiling.** Where numba has to compile kernels, those of one kind of work are compiled at once, by
  several processes, with a bar (`compilation`).

A part of work takes its arguments and a token, and returns arrays:

>>> import numpy as np
>>> from unless.runtime.interrupts import CancelToken
>>> from unless.runtime.parallel import run_shards
>>> def squares(numbers, token):
...     token.check()
...     return {"squares": np.square(numbers)}
>>> parts = run_shards(squares, [(range(3),), (range(3, 5),)], n_jobs=1, token=CancelToken())
>>> [part["squares"].tolist() for part in parts]
[[0, 1, 4], [9, 16]]
"""
