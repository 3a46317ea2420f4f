# When everything is scanned: at the beginning, where nothing steps, and when the library requests it.
from ..library import all_instances, contain, link, quietly, schedule
from .framework import Optimizer, perf_counter, sys, torch
from .modules import in_constructor
from .optimizers import plan_of
from .scans import Scans, scan
from .states import name_state
from .steps import Steps, follow_steps, run_isolated, stepped
from .variables import frames

SOON = 0.5        # seconds to the next scan of a program without steps, at least
IDLE_SHARE = 100  # such scans take at most one part in so many of the time


class NextScan:
    """The next scan where nothing steps: when it is due, and how many steps there were when it was scheduled."""
    due, steps = 0.0, 0


def schedule_scan(seconds):
    NextScan.due, NextScan.steps = perf_counter() + seconds, Steps.count
    schedule(int(seconds * 1000))


def schedule_periodic_scan():
    schedule_scan(max(SOON, IDLE_SHARE * Scans.cost))


def begin(rows):
    """What has names by now. Most often the program is in the middle of moving its first module to the device, and what it is going to be called is not known."""
    if not in_constructor():
        began = Scans.count
        scan(rows, whole=False, sure_only=True)
        name_optimizers(rows, began)  # of a program that trains before the script came
    schedule_scan(SOON)


def name_optimizers(rows, began):
    for optimizer in all_instances(Optimizer):
        plan = plan_of(optimizer)
        plan.prepare(plan.parameters(optimizer), rows, plan.ids is None, began)
        name_state(plan, optimizer, rows)


def scan_and_emit(rows):
    running = bool(frames())
    in_turn = running and perf_counter() >= NextScan.due
    if in_turn and Steps.count != NextScan.steps:
        schedule_periodic_scan()  # a training program scans when it steps
        return
    if in_turn and in_constructor():
        schedule_scan(SOON)
        return
    began = Scans.count
    scan(rows, sure_only=in_turn)
    name_optimizers(rows, began)
    if running:
        schedule_periodic_scan()


def report():
    """All that there is: at the end, when memory ran out, and now and then where no optimizer steps."""
    link()
    run_isolated(scan_and_emit)


def skipper():
    """What has the compiler leave a code as it is, or None."""
    place = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(place, "skip_code"):
        return place.skip_code
    if not hasattr(place, "set_code_exec_strategy"):
        return None
    strategy = place._FrameExecStrategy(place._FrameAction.SKIP, place._FrameAction.DEFAULT)
    return lambda code: place.set_code_exec_strategy(code, strategy)


def hide(code):
    """Has the compiler leave our functions as they are where it compiles what the program calls. It would break graphs, count, and warn."""
    skip = skipper()
    waiting = [code] if skip else []
    while waiting:
        code = waiting.pop()
        skip(code)
        waiting.extend(const for const in code.co_consts if type(const) is type(code))


try:
    hide(sys._getframe().f_code)
except Exception as error:
    contain(error)
follow_steps(quietly(stepped))
link()
run_isolated(begin)
