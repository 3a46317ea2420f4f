"""What is recorded of programs whose threads do nothing but allocate and free: how fast, what was lost or waited for, how large the spool became, how soon the process ended."""
import dataclasses
import statistics
import subprocess
import time

from document import table
from measure import LIMIT, ROOT, Failure, say, spread

GUESTS = ROOT / "testdata" / "guest"
THREADS = (1, 4, 64, 1000)
EVENTS = 5_000_000
BLOCKS = 16
SPINS = {"numbers only": 0, "numbers only, 0.3 us a call": 600}


@dataclasses.dataclass
class Storm:
    seconds: float  # from the first event to the last
    after: float    # seconds from the last event until the process was gone
    lost: int = 0
    waits: int = 0
    waited: float = 0.0
    spool: int = 0  # bytes, at its greatest; 0: no more than its first size


def compile_guests(setup):
    folder = setup.folder / "numbers"
    folder.mkdir(exist_ok=True)
    for name, source, flags in (("numbers/libcuda.so.1", "numbers_driver.c", ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]),
                                ("storm", "storm.c", [folder / "libcuda.so.1", "-pthread"])):
        command = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", setup.folder / name, GUESTS / source, *flags]
        if subprocess.run(command).returncode:
            raise Failure(f"{source} did not compile")


def run(setup, driver, spin, threads, events, traced):
    values = setup.environment(traced)
    values.update(LD_LIBRARY_PATH=str(driver), SPIN=str(spin))
    process = subprocess.Popen([setup.folder / "storm", str(threads), str(events), str(BLOCKS)], env=values, cwd=setup.folder, stdout=subprocess.PIPE, text=True)
    text, _ = process.communicate(timeout=LIMIT)
    ended = time.monotonic_ns()
    if process.returncode:
        raise Failure(f"a storm of {threads} threads ended with status {process.returncode}")
    seconds, last = map(float, text.split())
    storm = Storm(seconds, (ended - last) / 1e9)
    if traced:
        found = setup.info(setup.folder / "trace.bin")
        info, counted = found["info"], found["events"] - found["kinds"].get("lost", 0)
        storm.lost, storm.waits = found["lost"]["records"], int(info.get("overflow.waits", 0))
        storm.waited, storm.spool = int(info.get("overflow.waited_ns", 0)) / 1e9, int(info.get("spool.peak_bytes", 0))
        if counted + storm.lost < events // threads // 2 * threads * 2:
            raise Failure(f"{counted} events and {storm.lost} lost of {events}")
    return storm


def row(label, threads, events, plain, traced):
    rate = events / statistics.median([s.seconds for s in traced]) / 1e6
    largest = max(s.spool for s in traced) / 2**20
    return [label, f"{threads:,}", f"{rate:.2f} M", spread([t.seconds / p.seconds for p, t in zip(plain, traced)]), f"{max(s.lost for s in traced):,}",
            f"{max(s.waits for s in traced):,}, {max(s.waited / s.seconds for s in traced):.1%}", f"{largest:.0f} MiB" if largest else "at most 64 MiB",
            spread([s.after for s in traced], 3)]


def section(setup, quick):
    compile_guests(setup)
    events, rounds = (200_000, 1) if quick else (EVENTS, 3)
    drivers = [(label, setup.folder / "numbers", spin) for label, spin in SPINS.items()] + [("null GPU", setup.null_gpu, 0)]
    rows = []
    for label, driver, spin in drivers:
        for threads in THREADS:
            say(f"storm of {threads} threads, {label}")
            plain, traced = [], []
            for _ in range(rounds):
                plain.append(run(setup, driver, spin, threads, events, False))
                traced.append(run(setup, driver, spin, threads, events, True))
            rows.append(row(label, threads, events, plain, traced))
    return table(["driver", "threads", "events a second", "time, to the plain run's", "lost", "waited for", "spool", "last event to the process's end, s"], rows)
