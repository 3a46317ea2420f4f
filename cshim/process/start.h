/* Recording that the program itself began, by memtrace_start. */
#pragma once

/* Writes into a fresh dictionary when that was. */
void mt_start_note(void);
