/* Settings: MEMTRACE_* variables, copied once when the library is loaded, since programs rewrite their environment. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MT_PATH_MAX 4096
#define MT_CONTROL_DIR_MAX 95 /* with the terminator: a socket's name still has room for /4194304.sock */

/* Frameworks that there is an adapter for. */
enum mt_framework { MT_TORCH, MT_MXNET, MT_JAX, MT_FRAMEWORKS };

/* Which out-of-memory events get a text file beside the trace. */
enum mt_oom_texts { MT_OOM_NONE, MT_OOM_FAILED, MT_OOM_ALL };

struct mt_config {
  bool loaded;
  bool disabled;
  bool force;
  bool asleep;     /* MEMTRACE_START=asleep: nothing is recorded before a request (process/control.h) */
  uint32_t referrers_ms; /* MEMTRACE_REFERRERS: how long an automatic search may take; 0 none */
  uint32_t embed_symbols_ms; /* for which the drainer names code addresses in the trace at the end; 0 none */
  bool no_control; /* MEMTRACE_CONTROL=0: no control socket */
  bool no_nvtx;
  bool start_directory_known;
  int log_level;         /* enum mt_log_level */
  uint32_t nvml_seconds; /* between two samples of the device, 0: none */
  int oom;               /* enum mt_oom_texts */
  uint64_t trace_max;    /* bytes that the trace may have, 0: any */
  uint64_t guest_memory; /* bytes that the drainer may use to track live blocks, 0: it does not */
  uint64_t spool_max;
  uint64_t spool_hard_max; /* 0: default (cshim/spool/region.c) */
  bool drop;               /* MEMTRACE_OVERFLOW=drop: a thread never waits for room */
  uint32_t native_depth, python_depth; /* frames of call stacks, 0: none (of native ones the caller) */
  bool whole_stacks;                   /* native stacks continue past the interpreter's innermost frame */
  bool free_stacks;                    /* frees have a stack, not the caller only */
  uint32_t adapters;                   /* 1 << enum mt_framework */
  char output[MT_PATH_MAX]; /* pattern with placeholders */
  char spool_dir[MT_PATH_MAX];
  char run_dir[MT_PATH_MAX];
  char control_dir[MT_CONTROL_DIR_MAX]; /* of control sockets; "": /tmp/memtrace-UID */
  char start_directory[MT_PATH_MAX]; /* of the process, for relative patterns */
};

extern struct mt_config mt_config;

void mt_config_load(char **environment);

/* The value of a variable as the process was started with it, or has set it since; NULL if there is none. Not getenv,
 * which another library may have replaced. */
const char *mt_config_variable(const char *name);

/* Parses "64M", "1GiB", "4096"; returns 0 for anything else. */
uint64_t mt_parse_size(const char *text);
