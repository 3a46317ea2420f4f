# ruff: noqa: F401
# What MXNet calls its memory. Runs inside the traced program: it only reads, and lets no exception out. epoch, intern, emit and instances come from the library
# (cshim/adapters/pyfunction.c). Names are those of the GPU memory profilers that were made for MXNet: in_arg:PARAMETER, arg_grad:PARAMETER, aux_state:PARAMETER,
# optimizer_state:KIND:PARAMETER, data_entry:NAME. docs/names.md describes what a program can see of this.
#
# The files of this folder are one script, in the order that tools/genadapters has.

# This file: what is taken from MXNet and Python.

import sys
from struct import Struct
from time import perf_counter
from types import CodeType, FunctionType
from weakref import ref
modules, ending = sys.modules, sys.is_finalizing
mxnet, ctypes, gc = modules["mxnet"], modules["ctypes"], modules.get("gc") or __import__("gc")
NDArray = modules["mxnet.ndarray"].NDArray
Parameter, Block = modules["mxnet.gluon.parameter"].Parameter, modules["mxnet.gluon.block"].Block
Trainer = modules["mxnet.gluon.trainer"].Trainer
Executor, Module = modules["mxnet.executor"].Executor, modules["mxnet.module.module"].Module
Optimizer, Updater = modules["mxnet.optimizer.optimizer"].Optimizer, modules["mxnet.optimizer.optimizer"].Updater
MODULE, PARAMETER, BUFFER, GRADIENT, OPTIMIZER, STEP, DATA, FREE = range(1, 9)
GPU = 2          # of mxnet's device types
SCAN_EARLY = 16  # steps in which arrays are waited for that have no memory yet
SCAN_FROM, SCAN_EVERY = 64, 4096  # steps after which everything is read again although nothing seems to have changed: 64, 128, 256, and so on

plans = {}  # id of a trainer, module or updater -> Plan
