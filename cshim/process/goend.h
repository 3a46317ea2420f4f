/* How the Go half ends. Its runtime ends the whole process when something goes wrong that no recover() catches: no
 * memory, no thread, a lock held twice. In somebody else's process only the recording may end of that.
 * internal/lazyrela leads the runtime's own last instructions here, and the library's link (Makefile, --wrap) what its
 * C parts call then. */
#pragma once

/* Where the runtime's exit and abort go: may be jumped to from any stack, however little of it is left. The thread
 * stays for ever. */
_Noreturn void mt_go_ended(void);
