/* What the user asked for and does not get: settings that mean nothing or go too far. They are read before anybody may
 * speak, and told when recording starts. */
#pragma once

#include <stddef.h>

/* Keeps "MEMTRACE_name=value why"; name has no prefix and length bytes, value may be NULL. What is too long is cut,
 * what cannot be printed becomes a question mark; beyond eight complaints there is one more that says so. */
void mt_complain(const char *name, size_t length, const char *value, const char *why);

/* The oldest one that was not taken yet, or NULL. Belongs to this file. Of a process and the children that it forks
 * only the first who asks gets any. */
const char *mt_complaint_take(void);
