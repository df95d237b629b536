"""What is measured on a machine with a GPU: ensembles by size, and CFHM's variance with a million members.

    PYTHONPATH=src python benchmarks/gpu.py FOLDER

writes variance_h200.json and ensembles_h200.json to FOLDER; put them into docs/measured and run
`noslip bench page docs/measured -o docs`. Everything tells its seconds at once.
"""

import json
import sys
import time
from pathlib import Path

import jax

import noslip  # noqa: F401  switches JAX to 64 bits before anything is made
from noslip.bench import ensembles, variance


def main(folder: Path) -> None:
    assert jax.default_backend() == "gpu", f"this needs a GPU, but JAX sees {jax.devices()}"
    began = time.perf_counter()

    def show(row):
        print(f"[{time.perf_counter() - began:6.1f} s]", row, flush=True)

    result = ensembles.measure(show, cpu=False)
    print(ensembles.markdown(result), flush=True)
    (folder / "ensembles_h200.json").write_text(json.dumps(result, indent=1) + "\n")
    # SPARK is left to the CPU: its solve of 23 unknowns does not fit into a kernel
    result = variance.measure(10**6, show, backend="gpu", methods=("SI-DLA", "I-DLA", "GONZALEZ"))
    print(f"sampling took {result['sampling seconds']:.1f} s\n{variance.markdown(result)}", flush=True)
    (folder / "variance_h200.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
