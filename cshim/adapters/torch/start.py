# ruff: noqa: F821
# When everything is looked at: at the beginning, where nothing steps, and when the library asks.

SOON = 0.5        # seconds to the next look at a program without steps, at least
IDLE_SHARE = 100  # such looks take at most one part in so many of the time


class Asked:
    """The next look where nothing steps: when it is due, and how many steps there were when it was asked for."""
    due, steps = 0.0, 0


def ask(seconds):
    Asked.due, Asked.steps = perf_counter() + seconds, Steps.count
    again(int(seconds * 1000))


def ask_in_turn():
    ask(max(SOON, IDLE_SHARE * Looks.cost))


def begin(rows):
    """What has names by now. Most often the program is in the middle of moving its first module to the device, and what it is going to be called is not known."""
    if not being_made():
        began = Looks.count
        look(rows, whole=False, sure_only=True)
        name_optimizers(rows, began)  # of a program that trains before the script came
    ask(SOON)


def name_optimizers(rows, began):
    for optimizer in all_instances(Optimizer):
        plan = plan_of(optimizer)
        plan.prepare(plan.parameters(optimizer), rows, plan.ids is None, began)
        name_state(plan, optimizer, rows)


def tell(rows):
    running = bool(frames())
    in_turn = running and perf_counter() >= Asked.due
    if in_turn and Steps.count != Asked.steps:
        ask_in_turn()  # what trains looks when it steps
        return
    if in_turn and being_made():
        ask(SOON)
        return
    began = Looks.count
    look(rows, sure_only=in_turn)
    name_optimizers(rows, began)
    if running:
        ask_in_turn()


def report():
    """All that there is: at the end, when memory ran out, and now and then where no optimizer steps."""
    link()
    carefully(tell)


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
carefully(begin)
