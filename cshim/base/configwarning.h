/* Warnings about invalid settings. Settings are read before anything may be printed, so the warnings are kept until
 * recording starts. */
#pragma once

#include <stddef.h>

/* Keeps "MEMTRACE_name=value why"; name has no prefix and length bytes, value may be NULL. Long values are cut,
 * unprintable characters become question marks; the ninth warning says that there are more. */
void mt_config_warn(const char *name, size_t length, const char *value, const char *why);

/* The oldest warning that was not taken yet, or NULL. Owned by this file. Of a process and its forked children only the
 * first caller gets any. */
const char *mt_config_warning_take(void);
