#define _GNU_SOURCE
#include "base/config.h"

#include <string.h>
#include <unistd.h>

#include "base/configwarning.h"
#include "base/log.h"
#include "base/stack.h"
#include "base/sys.h"

struct mt_config mt_config = {.log_level = MT_LOG_WARN,
                              .oom = MT_OOM_FAILED, .nvml_seconds = 1, .referrers_ms = 2000, .spool_max = 64ull << 20,
                              .guest_memory = 256ull << 20, .native_depth = 64, .python_depth = 128, .adapters = ~0u,
                              .output = "memtrace.%e.%p.bin"};

#define MT_SPOOL_MIN (1ull << 20)
#define MT_GUEST_MEMORY_MIN (16ull << 20)
#define MT_TRACE_MAX_MIN (4ull << 20)
#define MT_SPOOL_LIMIT (64ull << 30)
#define MT_NVML_SECONDS_MAX 3600u
#define MT_REFERRERS_MS 2000u
#define MT_EMBED_SYMBOLS_MS 3000u
#define MT_MS_MAX 60000u

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

uint64_t mt_parse_size(const char *text) {
  uint64_t value = 0;
  const char *p = text;
  for (; is_digit(*p); p++) {
    if (value > (UINT64_MAX - 9) / 10) return 0;
    value = value * 10 + (uint64_t)(*p - '0');
  }
  if (p == text) return 0;
  int shift = 0;
  switch (*p) {
    case 'K': case 'k': shift = 10; break;
    case 'M': case 'm': shift = 20; break;
    case 'G': case 'g': shift = 30; break;
    case 'T': case 't': shift = 40; break;
    case 0: return value;
    default: return 0;
  }
  p++;
  if (*p && strcmp(p, "B") && strcmp(p, "iB") && strcmp(p, "ib")) return 0;
  return value > (UINT64_MAX >> shift) ? 0 : value << shift;
}

static void warn(const char *name, const char *value, const char *why) {
  mt_config_warn(name, strlen(name), value, why);
}

static void set_path(char *out, const char *name, const char *value) {
  size_t n = strlen(value);
  if (n < MT_PATH_MAX) memcpy(out, value, n + 1);
  else warn(name, value, "is too long and is not used");
}

static bool truthy(const char *value) {
  return *value && strcmp(value, "0") && strcmp(value, "false") && strcmp(value, "no") && strcmp(value, "off");
}

static void set_output(const char *v) {
  if (*v) set_path(mt_config.output, "OUTPUT", v);
}
static void set_force(const char *v) { mt_config.force = truthy(v); }
static void set_disable(const char *v) { mt_config.disabled = truthy(v); }
static void set_start(const char *v) {
  mt_config.asleep = !strcmp(v, "asleep");
  if (*v && !mt_config.asleep && strcmp(v, "now"))
    warn("START", v, "means nothing; it is now or asleep, and now is used");
}
static void set_control(const char *v) { mt_config.no_control = !truthy(v); }
/* Readers know it from /proc/PID/environ, and a relative name has no meaning there. */
static void set_control_dir(const char *v) {
  size_t n = strlen(v);
  if (*v && *v != '/') warn("CONTROL_DIR", v, "is no whole path and is not used");
  else if (n >= MT_CONTROL_DIR_MAX) warn("CONTROL_DIR", v, "has more than 94 bytes and is not used");
  else memcpy(mt_config.control_dir, v, n + 1);
}
static void set_nvtx(const char *v) { mt_config.no_nvtx = !truthy(v); }
static void set_spool_dir(const char *v) { set_path(mt_config.spool_dir, "SPOOL_DIR", v); }
static void set_run_dir(const char *v) { set_path(mt_config.run_dir, "RUN_DIR", v); }
static void ignore(const char *v) { (void)v; }

/* The usual words for on, where a setting is more than a switch. */
static bool is_on(const char *v) {
  return !strcmp(v, "1") || !strcmp(v, "on") || !strcmp(v, "yes") || !strcmp(v, "true");
}

static void set_oom(const char *v) {
  mt_config.oom = !truthy(v) ? MT_OOM_NONE : !strcmp(v, "all") ? MT_OOM_ALL : MT_OOM_FAILED;
  if (mt_config.oom == MT_OOM_FAILED && !is_on(v)) warn("OOM", v, "means nothing; it is on");
}

static void set_log(const char *v) {
  static const char *const names[] = {"off", "error", "warn", "info", "debug"};
  for (int i = 0; i < 5; i++)
    if (!strcmp(v, names[i])) {
      mt_config.log_level = i;
      return;
    }
  if (*v) warn("LOG", v, "is no level; warn is used");
}

/* A switch, or the seconds between two samples. */
static void set_nvml(const char *v) {
  uint64_t n = mt_parse_size(v);
  mt_config.nvml_seconds = !truthy(v) ? 0 : n < 1 ? 1 : n > MT_NVML_SECONDS_MAX ? MT_NVML_SECONDS_MAX : (uint32_t)n;
  if (!n && truthy(v) && !is_on(v)) warn("NVML", v, "is no number of seconds; 1 is used");
  if (n > MT_NVML_SECONDS_MAX) warn("NVML", v, "is too much; 3600 is used");
}

/* A number of milliseconds, or a switch that stands for the usual one, which nonsense names. */
static uint32_t milliseconds(const char *v, uint32_t usual, const char *name, const char *nonsense) {
  uint64_t n = mt_parse_size(v);
  if (!truthy(v)) return 0;
  if (!n && !is_on(v)) warn(name, v, nonsense);
  if (n > MT_MS_MAX) warn(name, v, "is too much; 60000 is used");
  return n <= 1 || is_on(v) ? usual : n > MT_MS_MAX ? MT_MS_MAX : (uint32_t)n;
}

static void set_referrers(const char *v) {
  mt_config.referrers_ms =
      milliseconds(v, MT_REFERRERS_MS, "REFERRERS", "is no number of milliseconds; 2000 is used");
}
static void set_embed_symbols(const char *v) {
  mt_config.embed_symbols_ms =
      milliseconds(v, MT_EMBED_SYMBOLS_MS, "EMBED_SYMBOLS", "is no number of milliseconds; 3000 is used");
}

static void set_spool_max(const char *v) {
  uint64_t n = mt_parse_size(v);
  if (n) mt_config.spool_max = n < MT_SPOOL_MIN ? MT_SPOOL_MIN : n > MT_SPOOL_LIMIT ? MT_SPOOL_LIMIT : n;
  else if (*v) warn("SPOOL_MAX", v, "is not a size; 64M is used");
  if (n && n < MT_SPOOL_MIN) warn("SPOOL_MAX", v, "is too little; 1M is used");
  if (n > MT_SPOOL_LIMIT) warn("SPOOL_MAX", v, "is too much; 64G is used");
}

static void set_spool_hard_max(const char *v) {
  uint64_t n = mt_parse_size(v);
  if (n) mt_config.spool_hard_max = n < MT_SPOOL_LIMIT ? n : MT_SPOOL_LIMIT;
  else if (*v) warn("SPOOL_HARD_MAX", v, "is not a size; the default is used");
  if (n > MT_SPOOL_LIMIT) warn("SPOOL_HARD_MAX", v, "is too much; 64G is used");
}

static void set_trace_max(const char *v) {
  uint64_t n = mt_parse_size(v);
  mt_config.trace_max = n && n < MT_TRACE_MAX_MIN ? MT_TRACE_MAX_MIN : n;
  if (!n && *v && truthy(v)) warn("TRACE_MAX", v, "is not a size; traces have no limit");
  if (n && n < MT_TRACE_MAX_MIN) warn("TRACE_MAX", v, "is too little; 4M is used");
}

static void set_guest_memory(const char *v) {
  uint64_t n = mt_parse_size(v);
  if (n) mt_config.guest_memory = n < MT_GUEST_MEMORY_MIN ? MT_GUEST_MEMORY_MIN : n;
  else if (!truthy(v)) mt_config.guest_memory = 0;
  else warn("GUEST_MEMORY", v, "is not a size; 256M is used");
  if (n && n < MT_GUEST_MEMORY_MIN) warn("GUEST_MEMORY", v, "is too little; 16M is used");
}

static void set_overflow(const char *v) {
  mt_config.drop = !strcmp(v, "drop");
  if (*v && !mt_config.drop && strcmp(v, "wait")) warn("OVERFLOW", v, "means nothing; wait is used");
}

enum word { WORD_TAKEN, WORD_UNKNOWN, WORD_TOO_MUCH };

static enum word set_depth(uint32_t *depth, const char *digits, size_t length, uint32_t most) {
  uint32_t n = 0;
  for (size_t i = 0; i < length; i++) {
    if (!is_digit(digits[i])) return WORD_UNKNOWN;
    n = n > most ? n : n * 10 + (uint32_t)(digits[i] - '0');
  }
  if (length) *depth = n > most ? most : n;
  return !length ? WORD_UNKNOWN : n > most ? WORD_TOO_MUCH : WORD_TAKEN;
}

/* One word of the list. */
static enum word set_stacks_word(const char *word, size_t length) {
  static const struct {
    const char *name;
    size_t length;
  } words[] = {{"none", 4}, {"full", 4}, {"frees", 5}, {"nofrees", 7}, {"native:", 7}, {"python:", 7}};
  size_t i = 0;
  for (; i < sizeof words / sizeof *words; i++)
    if (length >= words[i].length && !strncmp(word, words[i].name, words[i].length) &&
        (i > 3 || length == words[i].length))
      break;
  switch (i) {
    case 0: mt_config.native_depth = mt_config.python_depth = 0; return WORD_TAKEN;
    case 1:
      mt_config.native_depth = MT_NATIVE_MAX, mt_config.python_depth = MT_PYTHON_MAX, mt_config.whole_stacks = true;
      mt_config.free_stacks = true;
      return WORD_TAKEN;
    case 2: mt_config.free_stacks = true; return WORD_TAKEN;
    case 3: mt_config.free_stacks = false; return WORD_TAKEN;
    case 4: return set_depth(&mt_config.native_depth, word + 7, length - 7, MT_NATIVE_MAX);
    case 5: return set_depth(&mt_config.python_depth, word + 7, length - 7, MT_PYTHON_MAX);
  }
  return WORD_UNKNOWN;
}

/* Words separated by commas, from left to right. */
static void set_stacks(const char *v) {
  const char *whole = v;
  bool unknown = false, too_much = false;
  if (*v && !truthy(v)) v = "none";
  if (is_on(v)) return; /* as they are */
  while (*v) {
    size_t length = strcspn(v, ",");
    enum word word = length ? set_stacks_word(v, length) : WORD_TAKEN;
    unknown |= word == WORD_UNKNOWN;
    too_much |= word == WORD_TOO_MUCH;
    v += length + (v[length] == ',');
  }
  if (unknown) warn("STACKS", whole, "has a word that means nothing, and that word has no effect");
  if (too_much) warn("STACKS", whole, "is too much; at most 256 frames are used");
}

/* As MEMTRACE_ADAPTERS names them: the frameworks' modules in Python. */
static const char *const frameworks[MT_FRAMEWORKS] = {[MT_TORCH] = "torch", [MT_MXNET] = "mxnet", [MT_JAX] = "jax"};

/* Names of frameworks, separated by commas. */
static void set_adapters(const char *v) {
  uint32_t wanted = 0;
  bool unknown = false;
  if (is_on(v) || !strcmp(v, "all")) return;
  const char *whole = v;
  while (truthy(v) && *v) {
    size_t length = strcspn(v, ",");
    uint32_t known = 0;
    for (unsigned i = 0; i < MT_FRAMEWORKS; i++)
      if (length == strlen(frameworks[i]) && !memcmp(v, frameworks[i], length)) known |= 1u << i;
    unknown |= !known && length && strcmp(whole, "none");
    wanted |= known;
    v += length + (v[length] == ',');
  }
  if (unknown) warn("ADAPTERS", whole, "names what there is no adapter for, and that name has no effect");
  mt_config.adapters = wanted;
}

const char *mt_config_variable(const char *name) {
  size_t length = strlen(name);
  for (char **e = environ; e && *e; e++)
    if (!strncmp(*e, name, length) && (*e)[length] == '=') return *e + length + 1;
  return NULL;
}

static const struct {
  const char *name;
  void (*set)(const char *value);
} variables[] = {
    {"OUTPUT", set_output},
    {"FORCE", set_force},
    {"DISABLE", set_disable},
    {"LOG", set_log},
    {"SPOOL_DIR", set_spool_dir},
    {"SPOOL_MAX", set_spool_max},
    {"RUN_DIR", set_run_dir},
    {"STACKS", set_stacks},
    {"NVTX", set_nvtx},
    {"NVML", set_nvml},
    {"OOM", set_oom},
    {"EMBED_SYMBOLS", set_embed_symbols},
    {"SPOOL_HARD_MAX", set_spool_hard_max},
    {"TRACE_MAX", set_trace_max},
    {"OVERFLOW", set_overflow},
    {"GUEST_MEMORY", set_guest_memory},
    {"ADAPTERS", set_adapters},
    {"START", set_start},
    {"CONTROL", set_control},
    {"CONTROL_DIR", set_control_dir},
    {"LIBRARY", ignore}, /* read by the command, as the next three */
    {"OWN", ignore},
    {"PROFILE", ignore},
    {"PUSH_TOKEN", ignore},
    {"REFERRERS", set_referrers},
    {"CACHE", ignore},          /* the project's own scripts' */
    {"PYTEST_STARTED", ignore}, /* the pytest plugin's */
};

static void take(const char *name, size_t length, const char *value) {
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
    if (strlen(variables[i].name) == length && !memcmp(variables[i].name, name, length)) {
      variables[i].set(value);
      return;
    }
  mt_config_warn(name, length, NULL, "is unknown and has no effect; see docs/environment.md");
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
  if (!mt_config.disabled && relative)
    mt_config.start_directory_known = mt_sys_getcwd(mt_config.start_directory, sizeof mt_config.start_directory);
}
