# When everything is scanned: at the beginning, where nothing steps, and when the library requests it.
from ..library import epoch, quietly, schedule
from .follow import follow_all
from .framework import perf_counter, plans
from .memory import check_layout
from .rows import Rows, reset_for_new_recording
from .scans import scan_all

pause = [0.0]  # seconds until the next scan


def full_scan():
    """Also for a program without an optimizer. Until something steps it is repeated: after a second, then at a cost of one percent of the time, then of less."""
    if not epoch():
        return
    begin = perf_counter()
    reset_for_new_recording()
    rows = Rows()
    scan_all(rows)
    rows.send()
    if not plans:
        pause[0] = max(2 * pause[0], 100 * (perf_counter() - begin)) if pause[0] else 1.0
        schedule(int(1000 * min(pause[0], 3600)))


check_layout()
follow_all()
report = quietly(full_scan)
report()
