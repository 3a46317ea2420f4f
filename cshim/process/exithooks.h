/* The ways by which a program ends itself. */
#pragma once

/* Called once when the library is loaded. */
void mt_exit_hooks_init(void);
