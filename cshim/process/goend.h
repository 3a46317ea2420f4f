/* The end of the Go half. Its runtime exits the whole process after a fatal error that no recover() catches: no memory,
 * no thread, a lock held twice. In a traced program only the recording may end then. internal/lazyrela redirects the
 * runtime's exit here, and the library's link (Makefile, --wrap) what its C parts call then. */
#pragma once

/* Where the runtime's exit and abort go: may be jumped to from any stack, however little of it is left. The thread
 * stays for ever. */
_Noreturn void mt_go_ended(void);
