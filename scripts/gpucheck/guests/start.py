# SPDX-License-Identifier: Apache-2.0
"""Makes a context, takes one block, gives it back and ends."""

from driver import MIB, call, initialize, primary_context, take

primary_context(initialize())
call("cuMemFree_v2", take(MIB))
