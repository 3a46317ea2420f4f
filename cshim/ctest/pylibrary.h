/* What libraries have in common that an interpreter loads with ctypes to test what the library does inside of it:
 * pylibrary.py calls this. */
#pragma once

#include <stdio.h>

#include "base/config.h"
#include "process/recorder.h"
#include "spool/region.h"

/* Starts to record into that file's spool. */
MT_EXPORT int pylibrary_open(const char *path) {
  snprintf(mt_config.output, sizeof mt_config.output, "%s", path);
  mt_config.log_level = MT_LOG_WARN;
  mt_config.nvml_seconds = 0;
  mt_config.adapters = 3;
  return mt_thread_get() != NULL;
}

/* The dictionary's entry id: its kind, its length and where it lies. */
MT_EXPORT const void *pylibrary_entry(uint32_t id, uint32_t *kind, uint32_t *length) {
  if (!id || id > mt_header()->index_used) return NULL;
  *kind = mt_index()[id - 1].kind;
  *length = mt_index()[id - 1].length;
  return mt_data() + mt_index()[id - 1].offset;
}

MT_EXPORT uint32_t pylibrary_entries(void) { return mt_header()->index_used; }
