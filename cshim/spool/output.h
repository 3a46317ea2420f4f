/* Names and creation of the files a process leaves: the trace and its spool. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/config.h"

struct mt_output {
  char trace[MT_PATH_MAX]; /* absolute */
  char spool[MT_PATH_MAX];
  uint64_t device, inode, owner; /* of the trace, so that the drainer knows it again */
};

/* Expands the pattern of mt_config, makes missing folders, reserves the trace file (mode 0600, never over an existing
 * one unless forced) and opens a fresh spool beside it or in MEMTRACE_SPOOL_DIR. Returns the spool's descriptor, or -1
 * with errno set and *what naming the step that failed. */
int mt_output_create(struct mt_output *out, const char **what);

/* Writes "device:inode:owner", which identifies a file, and returns text. */
#define MT_FILE_TEXT 64
const char *mt_output_file_text(char text[MT_FILE_TEXT], uint64_t device, uint64_t inode, uint64_t owner);

/* Expands placeholders of pattern into out; returns 0, or -1 when the result does not fit. counter is what %n becomes.
 */
int mt_output_expand(char *out, size_t room, const char *pattern, unsigned counter);
