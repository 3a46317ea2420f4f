# SPDX-License-Identifier: Apache-2.0
"""Holds a number of bytes on the device until it is ended, and says "held" when it does."""

import signal
import sys

from driver import initialize, primary_context, take

primary_context(initialize())
take(int(sys.argv[1]))
print("held", flush=True)
signal.pause()
