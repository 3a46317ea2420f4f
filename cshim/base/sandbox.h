/* Whether a filter stands between this process and the kernel (seccomp), and whose it is. */
#pragma once

enum mt_sandbox {
  MT_SANDBOX_NONE,
  MT_SANDBOX_INHERITED, /* of a container or a service manager: refuses what is exotic, and was in force when the
                           program and this library were loaded */
  MT_SANDBOX_OWN, /* the program's own, or one of which that cannot be ruled out: may end the process over any call that
                     the program does not make itself */
};

/* Reads /proc; may be called from any thread. What a filter says cannot be read, so the answer rests on who installed
 * it. */
enum mt_sandbox mt_sandbox_kind(void);
