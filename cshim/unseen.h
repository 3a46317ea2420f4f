/* What the library knows that it does not see, for the trace to say so. */
#pragma once

/* Remembers that a function was handed out unhooked, because it was asked for in a version newer than those that hooks.def describes. */
void mt_unseen_add(const char *base, int version);

/* Writes what is remembered into the trace's information, as "unhooked.NAME" = version. For the start of recording and its end. */
void mt_unseen_tell(void);
