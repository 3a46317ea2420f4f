# ruff: noqa: F401
# PyTorch's names of its memory. Runs inside the traced program: it only reads, and lets no exception out. The files of this folder are one script, in the order that
# tools/genadapters has; ../library.pyi declares what the library gives them (cshim/adapters/pyfunction.h).
#
# Nothing of the program's runs: attributes are read past __getattr__ and properties, from dictionaries and slots; methods are those of PyTorch's and Python's own classes, called
# as such; functions of __torch_function__ and __torch_dispatch__ are switched off or avoided. Tensors get no weak references, which torch.utils.swap_tensors would refuse.
#
# Full scans are rare (docs/names.md): between them a step emits its gradients' addresses, and that it happened. Threads may step at the same time; what they
# share is replaced, not changed, or of no harm when a thread sees the other's half.

# This file: what is taken from PyTorch and Python before the program can put something else in its place.
import functools
import sys
import weakref
from struct import Struct
from time import perf_counter

torch = sys.modules["torch"]
gc = sys.modules.get("gc") or __import__("gc")
Module, Tensor, Parameter, Optimizer = torch.nn.Module, torch.Tensor, torch.nn.Parameter, torch.optim.Optimizer
Base = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase
data_ptr, numel, element_size, storage_offset = Base.data_ptr, Base.numel, Base.element_size, Base.storage_offset
is_cuda, is_leaf, grad_of, layout_of = (Base.__dict__[key].__get__ for key in ("is_cuda", "is_leaf", "grad", "layout"))
WithoutFunctions = torch._C.DisableTorchFunction
function_modes = getattr(torch._C, "_len_torch_function_stack", lambda: 0)
is_recorded, record = torch.is_grad_enabled, torch._C._set_grad_enabled
old = not hasattr(torch._C, "DisableTorchFunctionSubclass")  # to 1.13: modes see what DisableTorchFunction hides from subclasses only
dispatch_keys, PYTHON = getattr(torch._C, "_dispatch_keys", None), getattr(torch._C.DispatchKey, "Python", None)
compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or getattr(torch._utils, "is_compiling", None) or (lambda: False)

mro, members, classname = (type.__dict__[key].__get__ for key in ("__mro__", "__dict__", "__name__"))
below = type.__subclasscheck__
module_fields, optimizer_fields = Module.__dict__["__dict__"].__get__, Optimizer.__dict__["__dict__"].__get__
attribute_of, referents = object.__getattribute__, gc.get_referents
Slot, Attribute, Namespace, Function = type(type(lambda: 0).__dict__["__globals__"]), type(type.__dict__["__dict__"]), type(sys), type(lambda: 0)
Cell = (lambda held: type((lambda: held).__closure__[0]))(0)
plain_fields = next(members(cls)["__dict__"].__get__ for cls in mro(Tensor) if "__dict__" in members(cls))
SIMPLE = frozenset((int, float, str, bytes, bool, type(None), complex, Function, type, Namespace))
Method = type((lambda self: 0).__get__(0))
PLAIN = frozenset((Tensor, Parameter))  # classes without overridden attributes

MODULE, PARAMETER, BUFFER, GRADIENT, OPTIMIZER, STEP = range(1, 7)  # categories (cshim/spool/namerow.h)
FEW, MANY, DEEP = 64, 4096, 4  # of a variable's parts, of an object's tensors, levels of its parts
