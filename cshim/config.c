#define _GNU_SOURCE
#include "config.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"

struct mt_config mt_config = {.log_level = MT_LOG_WARN, .oom = MT_OOM_FAILED, .nvml_seconds = 1, .spool_max = 64ull << 20, .output = "memtrace.%e.%p.bin"};

#define MT_SPOOL_MIN (1ull << 20)
#define MT_SPOOL_LIMIT (64ull << 30)
#define MT_NVML_SECONDS_MAX 3600u

uint64_t mt_parse_size(const char *text) {
  uint64_t value = 0;
  const char *p = text;
  for (; isdigit((unsigned char)*p); p++) {
    if (value > (UINT64_MAX - 9) / 10) return 0;
    value = value * 10 + (uint64_t)(*p - '0');
  }
  if (p == text) return 0;
  int shift = 0;
  switch (toupper((unsigned char)*p)) {
    case 'K': shift = 10; break;
    case 'M': shift = 20; break;
    case 'G': shift = 30; break;
    case 'T': shift = 40; break;
    case 0: return value;
    default: return 0;
  }
  p++;
  if (*p && strcmp(p, "B") && strcmp(p, "iB") && strcmp(p, "ib")) return 0;
  return value > (UINT64_MAX >> shift) ? 0 : value << shift;
}

static void copy(char *out, size_t room, const char *value) {
  size_t n = strnlen(value, room - 1);
  memcpy(out, value, n);
  out[n] = 0;
}

static bool truthy(const char *value) { return *value && strcmp(value, "0") && strcmp(value, "false") && strcmp(value, "no") && strcmp(value, "off"); }

static void set_output(const char *v) {
  if (*v) copy(mt_config.output, sizeof mt_config.output, v);
}
static void set_force(const char *v) { mt_config.force = truthy(v); }
static void set_disable(const char *v) { mt_config.disabled = truthy(v); }
static void set_nvtx(const char *v) { mt_config.no_nvtx = !truthy(v); }
static void set_spool_dir(const char *v) { copy(mt_config.spool_dir, sizeof mt_config.spool_dir, v); }
static void set_run_dir(const char *v) { copy(mt_config.run_dir, sizeof mt_config.run_dir, v); }
static void set_elsewhere(const char *v) { (void)v; }

static void set_oom(const char *v) { mt_config.oom = !truthy(v) ? MT_OOM_NONE : !strcmp(v, "all") ? MT_OOM_ALL : MT_OOM_FAILED; }

static void set_log(const char *v) {
  static const char *const names[] = {"off", "error", "warn", "info", "debug"};
  for (int i = 0; i < 5; i++)
    if (!strcmp(v, names[i])) mt_config.log_level = i;
}

/* A switch, or the seconds between two samples. */
static void set_nvml(const char *v) {
  uint64_t n = mt_parse_size(v);
  mt_config.nvml_seconds = !truthy(v) ? 0 : n < 1 ? 1 : n > MT_NVML_SECONDS_MAX ? MT_NVML_SECONDS_MAX : (uint32_t)n;
}

static void set_spool_max(const char *v) {
  uint64_t n = mt_parse_size(v);
  if (n) mt_config.spool_max = n < MT_SPOOL_MIN ? MT_SPOOL_MIN : n > MT_SPOOL_LIMIT ? MT_SPOOL_LIMIT : n;
}

static const struct {
  const char *name;
  void (*set)(const char *value);
} variables[] = {
    {"OUTPUT", set_output},       {"FORCE", set_force},         {"DISABLE", set_disable},     {"LOG", set_log},
    {"SPOOL_DIR", set_spool_dir}, {"SPOOL_MAX", set_spool_max}, {"RUN_DIR", set_run_dir},     {"STACKS", set_elsewhere},
    {"NVTX", set_nvtx},           {"NVML", set_nvml},
    {"OOM", set_oom},
    {"LIBRARY", set_elsewhere}, /* read by the command */
    {"CACHE", set_elsewhere},   /* read by the project's own scripts */
};

static void take(const char *name, size_t length, const char *value) {
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
    if (strlen(variables[i].name) == length && !memcmp(variables[i].name, name, length)) {
      variables[i].set(value);
      return;
    }
  if (!mt_config.unknown[0]) {
    memcpy(mt_config.unknown, "MEMTRACE_", 9);
    size_t room = sizeof mt_config.unknown - 10;
    memcpy(mt_config.unknown + 9, name, length < room ? length : room);
  }
}

void mt_config_load(char **environment) {
  static const char prefix[] = "MEMTRACE_";
  if (!environment) return;
  mt_config.loaded = true;
  for (char **e = environment; *e; e++) {
    if (strncmp(*e, prefix, sizeof prefix - 1)) continue;
    const char *name = *e + sizeof prefix - 1, *equals = strchr(name, '=');
    if (equals) take(name, (size_t)(equals - name), equals + 1);
  }
  bool relative = mt_config.output[0] != '/' || (mt_config.spool_dir[0] && mt_config.spool_dir[0] != '/');
  if (!mt_config.disabled && relative) mt_config.start_directory_known = getcwd(mt_config.start_directory, sizeof mt_config.start_directory) != NULL;
}
