/* The only output to the user: lines on the standard error that the process was started with. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Remembers the process's standard error. Once, at load. */
void mt_log_init(void);

/* "device:inode" of the standard error that the process was loaded with, "" without one. A program may close it and
 * open a file of its own under the number. */
const char *mt_log_stderr(void);

/* Writes digits and a 0 byte, at most 21 bytes in all, and returns where that is. */
char *mt_put_number(char *at, uint64_t n);

/* Writes the next character of a text so that a terminal is safe from it, controls as escapes such as \x1b and \u202e,
 * advances the text, and returns how many bytes that are: MT_LOG_CHARACTER at most. Texts may come from outside: file
 * names. */
#define MT_LOG_CHARACTER 10u
size_t mt_log_escape(char *to, const char **text);

/* Writes one line to stderr with the library's prefix if the log level allows it; no stdio, no malloc, errno kept. */
enum mt_log_level { MT_LOG_OFF = 0, MT_LOG_ERROR = 1, MT_LOG_WARN = 2, MT_LOG_INFO = 3, MT_LOG_DEBUG = 4 };
void mt_log(enum mt_log_level level, const char *a, const char *b, const char *c);
