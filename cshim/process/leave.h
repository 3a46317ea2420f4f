/* The ways by which a program ends itself. */
#pragma once

/* Called once when the library is loaded. */
void mt_leave_prepare(void);
