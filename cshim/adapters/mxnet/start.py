# ruff: noqa: F821
# When everything is looked at: at the beginning, where nothing steps, and when the library asks.

pause = [0.0]  # seconds until the next look


def everything():
    """What a program without an optimizer has, too. Until something steps it is looked for again: after a second, then at a cost of one percent of the time, then of less."""
    if not epoch():
        return
    begin = perf_counter()
    renewed()
    rows = Rows()
    look_around(rows)
    rows.send()
    if not plans:
        pause[0] = max(2 * pause[0], 100 * (perf_counter() - begin)) if pause[0] else 1.0
        again(int(1000 * min(pause[0], 3600)))


check_layout()
follow_all()
report = quietly(everything)
report()
