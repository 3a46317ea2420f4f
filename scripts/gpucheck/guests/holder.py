# SPDX-License-Identifier: Apache-2.0
"""Holds a number of bytes on the device until it is ended, and says "held" when it does. With a minus sign: all but so many."""

import signal
import sys

from driver import free_bytes, initialize, primary_context, take

primary_context(initialize())
wanted = int(sys.argv[1])
take(wanted if wanted > 0 else free_bytes() + wanted)
print("held", flush=True)
signal.pause()
