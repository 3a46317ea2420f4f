/* The end of the Go half. Its runtime exits the whole process after a fatal error that no recover() catches: no memory,
 * no thread, a lock held twice. In a traced program only the recording may end then. tools/patchruntime redirects the
 * runtime's exit here, and the library's link (Makefile, --wrap) what its C parts call then. */
#pragma once

/* Target of the runtime's exit and abort: may be jumped to from any stack, however little of it is left. Does not
 * return. */
_Noreturn void mt_go_ended(void);
