# ruff: noqa: F821
# The test of what ties backward to forward (cshim/backward.h).


class Link:
    made = False


def link():
    """Finds out how the nodes of the graph look inside, with a small graph of our own. Whether it is known now."""
    if torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack():
        return False

    with torch.inference_mode(False), torch.enable_grad():
        if not link_begin():
            return False

        class Probe(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, gradient):
                link_look()
                return gradient

        x = torch.zeros(1, device="cpu", dtype=torch.float32, requires_grad=True)
        y = Probe.apply(x)
        z = Probe.apply(y)
        first, second = z.grad_fn._sequence_nr(), y.grad_fn._sequence_nr()
        torch.autograd.Variable._execution_engine.run_backward((z,), (torch.ones_like(z),), False, False, (), allow_unreachable=True, accumulate_grad=True)  # imports nothing
    return link_end(first, second) == 1


def try_link():
    try:
        Link.made = Link.made or link()
    except Exception as error:
        contain(error)
