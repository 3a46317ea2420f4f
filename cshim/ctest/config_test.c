/* What MEMTRACE_* variables become. */
#define _GNU_SOURCE
#include "base/config.h"

#include <string.h>

#include "base/configwarning.h"
#include "base/log.h"
#include "check.h"
#include "process/recorder.h"

static void sizes(void) {
  static const struct {
    const char *text;
    uint64_t value;
  } good[] = {{"1", 1},
              {"4096", 4096},
              {"64M", 64 << 20},
              {"64MB", 64 << 20},
              {"64MiB", 64 << 20},
              {"64mib", 64 << 20},
              {"1g", 1 << 30},
              {"2T", 2ull << 40},
              {"3kB", 3 << 10},
              {"18446744073709551609", UINT64_MAX - 6},
              {"16777215T", 16777215ull << 40},
              {"007", 7}};
  static const char *const bad[] = {"",
                                    "M",
                                    "-1",
                                    "+1",
                                    " 1",
                                    "1 ",
                                    "1.5G",
                                    "0x10",
                                    "1X",
                                    "1MM",
                                    "1MiBs",
                                    "18446744073709551616",
                                    "99999999999999999999999",
                                    "16777216T",
                                    "18446744073709551615K",
                                    "0",
                                    "0M"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) CHECK_EQ(mt_parse_size(good[i].text), good[i].value);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK_EQ(mt_parse_size(bad[i]), 0);
}

static void load(const char *a, const char *b, const char *c) {
  mt_config_load((char *[]){(char *)"HOME=/", (char *)a, (char *)b, (char *)c, NULL});
}

#define CHECK_WARNING(text) CHECK_TEXT(taken(), text)

static const char *taken(void) {
  const char *warning = mt_config_warning_take();
  return warning ? warning : "";
}

static void values(void) {
  load("MEMTRACE_OUTPUT=/x/y.bin", "MEMTRACE_SPOOL_MAX=128M", "MEMTRACE_LOG=debug");
  CHECK_TEXT(mt_config.output, "/x/y.bin");
  CHECK_EQ(mt_config.spool_max, 128 << 20);
  CHECK_EQ(mt_config.log_level, MT_LOG_DEBUG);
  load("MEMTRACE_OUTPUT=", "MEMTRACE_SPOOL_MAX=nonsense", "MEMTRACE_LOG=nonsense");
  CHECK_TEXT(mt_config.output, "/x/y.bin");
  CHECK_EQ(mt_config.spool_max, 128 << 20);
  CHECK_EQ(mt_config.log_level, MT_LOG_DEBUG);
  load("MEMTRACE_SPOOL_MAX=1", "MEMTRACE_DISABLE=1", "MEMTRACE_FORCE=yes");
  CHECK_EQ(mt_config.spool_max, 1 << 20);
  CHECK(mt_config.disabled && mt_config.force);
  load("MEMTRACE_SPOOL_MAX=1T", "MEMTRACE_DISABLE=0", "MEMTRACE_FORCE=off");
  CHECK_EQ(mt_config.spool_max, 64ull << 30);
  CHECK(!mt_config.disabled && !mt_config.force);
  CHECK_WARNING("MEMTRACE_SPOOL_MAX=nonsense is not a size; 64M is used");
  CHECK_WARNING("MEMTRACE_LOG=nonsense is no level; warn is used");
  CHECK_WARNING("MEMTRACE_SPOOL_MAX=1 is too little; 1M is used");
  CHECK_WARNING("MEMTRACE_SPOOL_MAX=1T is too much; 64G is used");
  CHECK_WARNING("");
}

/* Nonsense was taken in silence, and the user thought that it was in force. */
static void nonsense(void) {
  static const struct {
    const char *text, *warning;
  } cases[] = {{"SPOOL_MAX=-1", " is not a size; 64M is used"},
               {"SPOOL_MAX=99999999999999999999", " is not a size; 64M is used"},
               {"NVML=99999999999999", " is too much; 3600 is used"},
               {"NVML=bogus", " is no number of seconds; 1 is used"},
               {"REFERRERS=bogus", " is no number of milliseconds; 2000 is used"},
               {"REFERRERS=99999999", " is too much; 60000 is used"},
               {"EMBED_SYMBOLS=bogus", " is no number of milliseconds; 3000 is used"},
               {"LOG=bogus", " is no level; warn is used"},
               {"OOM=bogus", " means nothing; it is on"},
               {"STACKS=bogus", " has a word that means nothing, and that word has no effect"},
               {"STACKS=native:100000", " is too much; at most 256 frames are used"},
               {"ADAPTERS=bogus", " names what there is no adapter for, and that name has no effect"},
               {"START=bogus", " means nothing; it is now or asleep, and now is used"},
               {"START=asleep", NULL},
               {"START=now", NULL},
               {"START=", NULL},
               {"ADAPTERS=none", NULL},
               {"ADAPTERS=torch,,mxnet", NULL},
               {"OOM=all", NULL},
               {"OOM=1", NULL},
               {"NVML=on", NULL},
               {"LOG=info", NULL},
               {"SPOOL_MAX=", NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char setting[100] = "MEMTRACE_", wanted[200];
    strcat(setting, cases[i].text);
    load(setting, NULL, NULL);
    strcpy(wanted, cases[i].warning ? setting : "");
    CHECK_WARNING(strcat(wanted, cases[i].warning ? cases[i].warning : ""));
    CHECK_WARNING("");
  }
  mt_config.adapters = ~0u;
  mt_config.log_level = MT_LOG_WARN;
}

static void begin(void) {
  load("MEMTRACE_START=asleep", "MEMTRACE_CONTROL=0", "MEMTRACE_REFERRERS=0");
  CHECK(mt_config.asleep && mt_config.no_control && !mt_config.referrers_ms);
  load("MEMTRACE_START=now", "MEMTRACE_CONTROL=1", "MEMTRACE_REFERRERS=1");
  CHECK(!mt_config.asleep && !mt_config.no_control && mt_config.referrers_ms == 2000);
  load("MEMTRACE_REFERRERS=300", "", "");
  CHECK(mt_config.referrers_ms == 300);
  load("MEMTRACE_EMBED_SYMBOLS=1", "", "");
  CHECK_EQ(mt_config.embed_symbols_ms, 3000);
  load("MEMTRACE_EMBED_SYMBOLS=45000", "", "");
  CHECK_EQ(mt_config.embed_symbols_ms, 45000);
  load("MEMTRACE_EMBED_SYMBOLS=off", "", "");
  CHECK_EQ(mt_config.embed_symbols_ms, 0);
}

/* One that cannot hold a socket's name leaves the folder that there was. */
static void control_dir(void) {
  char longest[] = "MEMTRACE_CONTROL_DIR=/0123456789012345678901234567890123456789"
                   "01234567890123456789012345678901234567890123456789xxx",
       longer[sizeof longest + 1];
  load(longest, "", "");
  CHECK_TEXT(mt_config.control_dir, strchr(longest, '/'));
  CHECK_EQ(strlen(mt_config.control_dir), MT_CONTROL_DIR_MAX - 1);
  load("MEMTRACE_CONTROL_DIR=/run/x", "MEMTRACE_CONTROL_DIR=run/x", strcat(strcpy(longer, longest), "x"));
  CHECK_TEXT(mt_config.control_dir, "/run/x");
  CHECK_WARNING("MEMTRACE_CONTROL_DIR=run/x is no whole path and is not used");
  const char *warning = taken();
  CHECK(strstr(warning, " has more than 94 bytes and is not used"));
  CHECK_WARNING("");
  load("MEMTRACE_CONTROL_DIR=", "", "");
  CHECK_TEXT(mt_config.control_dir, "");
}

static void room(void) {
  load("MEMTRACE_SPOOL_HARD_MAX=3G", "MEMTRACE_OVERFLOW=drop", "");
  CHECK_EQ(mt_config.spool_hard_max, 3ull << 30);
  CHECK(mt_config.drop);
  load("MEMTRACE_SPOOL_HARD_MAX=1T", "MEMTRACE_OVERFLOW=wait", "");
  CHECK_EQ(mt_config.spool_hard_max, 64ull << 30);
  CHECK(!mt_config.drop);
  CHECK_WARNING("MEMTRACE_SPOOL_HARD_MAX=1T is too much; 64G is used");
}

static void guest_memory(void) {
  static const struct {
    const char *text;
    uint64_t bytes;
    const char *warning;
  } cases[] = {{"64M", 64 << 20, ""},  {"0", 0, ""},
               {"off", 0, ""},         {"300", 16 << 20, " is too little; 16M is used"},
               {"8G", 8ull << 30, ""}, {"much", 256 << 20, " is not a size; 256M is used"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char setting[64] = "MEMTRACE_GUEST_MEMORY=", wanted[128];
    mt_config.guest_memory = 256 << 20;
    load(strcat(setting, cases[i].text), NULL, NULL);
    CHECK_EQ(mt_config.guest_memory, cases[i].bytes);
    strcpy(wanted, *cases[i].warning ? setting : "");
    CHECK_WARNING(strcat(wanted, cases[i].warning));
  }
}

static void sampling(void) {
  static const struct {
    const char *text;
    uint32_t seconds;
  } cases[] = {{"MEMTRACE_NVML=0", 0},   {"MEMTRACE_NVML=off", 0}, {"MEMTRACE_NVML=", 0},     {"MEMTRACE_NVML=1", 1},
               {"MEMTRACE_NVML=yes", 1}, {"MEMTRACE_NVML=60", 60}, {"MEMTRACE_NVML=1G", 3600}};
  CHECK_EQ(mt_config.nvml_seconds, 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    load(cases[i].text, NULL, NULL);
    CHECK_EQ(mt_config.nvml_seconds, cases[i].seconds);
  }
  CHECK_WARNING("MEMTRACE_NVML=1G is too much; 3600 is used");
  CHECK_WARNING("");
}

static void stacks(void) {
  static const struct {
    const char *text;
    uint32_t native, python;
    bool whole, frees;
  } cases[] = {{"MEMTRACE_STACKS=", 64, 128, false, false},
               {"MEMTRACE_STACKS=on", 64, 128, false, false},
               {"MEMTRACE_STACKS=native:10", 10, 128, false, false},
               {"MEMTRACE_STACKS=python:0,native:1", 1, 0, false, false},
               {"MEMTRACE_STACKS=native:0", 0, 128, false, false},
               {"MEMTRACE_STACKS=native:999999999999,python:257", 256, 256, false, false},
               {"MEMTRACE_STACKS=frees", 64, 128, false, true},
               {"MEMTRACE_STACKS=frees,native:10,nofrees", 10, 128, false, false},
               {"MEMTRACE_STACKS=full", 256, 256, true, true},
               {"MEMTRACE_STACKS=full,native:30,nofrees", 30, 256, true, false},
               {"MEMTRACE_STACKS=none", 0, 0, false, false},
               {"MEMTRACE_STACKS=off", 0, 0, false, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    mt_config.native_depth = 64, mt_config.python_depth = 128,
    mt_config.whole_stacks = mt_config.free_stacks = false;
    load(cases[i].text, NULL, NULL);
    CHECK_EQ(mt_config.native_depth, cases[i].native);
    CHECK_EQ(mt_config.python_depth, cases[i].python);
    CHECK_EQ(mt_config.whole_stacks, cases[i].whole);
    CHECK_EQ(mt_config.free_stacks, cases[i].frees);
    CHECK_WARNING(i == 5 ? "MEMTRACE_STACKS=native:999999999999,python:257 is too much; at most 256 frames are used"
                           : "");
  }
}

static void unknown_word(void) {
  mt_config.native_depth = 64, mt_config.free_stacks = false;
  load("MEMTRACE_STACKS=fuller,frees,native:x", NULL, NULL);
  CHECK_EQ(mt_config.native_depth, 64);
  CHECK(mt_config.free_stacks);
  CHECK_WARNING("MEMTRACE_STACKS=fuller,frees,native:x has a word that means nothing, and that word has no effect");
  load("MEMTRACE_STACKS=native:x", NULL, NULL);
  CHECK_WARNING("MEMTRACE_STACKS=native:x has a word that means nothing, and that word has no effect");
}

static void unknown(void) {
  load("MEMTRACE_OUTPT=x", "MEMTRACE_ALSO=y", "MEMTRACE=z");
  CHECK_WARNING("MEMTRACE_OUTPT is unknown and has no effect; see docs/environment.md");
  CHECK_WARNING("MEMTRACE_ALSO is unknown and has no effect; see docs/environment.md");
  CHECK_WARNING("");
}

static void known_to_others(void) {
  load("MEMTRACE_LIBRARY=x", "MEMTRACE_CACHE=y", "MEMTRACE_STACKS=full");
  load("MEMTRACE_OWN=x", NULL, NULL);
  CHECK_WARNING("");
}

static void strange(void) {
  char name[400];
  memset(name, 'N', sizeof name - 1);
  memcpy(name, "MEMTRACE_", 9);
  memcpy(name + sizeof name - 3, "=v", 3);
  load(name, "MEMTRACE_OUTPUT", "=MEMTRACE_OUTPUT=q");
  const char *cut = mt_config_warning_take();
  CHECK(cut && strstr(cut, "NNN... is unknown"));
  CHECK_TEXT(mt_config.output, "memtrace.%e.%p.bin");
  static char huge[3 * MT_PATH_MAX] = "MEMTRACE_OUTPUT=/";
  memset(huge + 17, 'h', sizeof huge - 18);
  load(huge, NULL, NULL);
  CHECK_TEXT(mt_config.output, "memtrace.%e.%p.bin");
  cut = mt_config_warning_take();
  CHECK(cut && strstr(cut, "hhh... is too long and is not used"));
  for (int i = 0; i < 20; i++) load("MEMTRACE_LOG=\x1b[31m", NULL, NULL);
  int lines = 0;
  for (const char *line; (line = mt_config_warning_take()); lines++) CHECK(!strchr(line, 27));
  CHECK(lines > 1 && lines <= 9);
  mt_config_load(NULL);
}

static void check_visible(const char *text, const char *want) {
  char got[256];
  size_t used = 0;
  while (*text) used += mt_log_escape(got + used, &text);
  got[used] = 0;
  CHECK_TEXT(got, want);
}

/* MEMTRACE_OUTPUT stood in messages as it was, with what a terminal obeys. */
static void visible(void) {
  static const char plain[] = "plain /tmp/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80.bin";
  check_visible(plain, plain);
  check_visible("a\x1b]0;t\x07\n\x7f", "a\\x1b]0;t\\x07\\x0a\\x7f");
  check_visible("\xe2\x80\xae\xc2\x9b\xef\xbb\xbf\xf3\xa0\x80\x81", "\\u202e\\u009b\\ufeff\\U000e0001");
  check_visible("\xff\xc3(\xe2\x82", "\\xff\\xc3(\\xe2\\x82");
}

int main(void) {
  static const struct check_case cases[] = {
      {"sizes", sizes},
      {"values", values},
      {"nonsense", nonsense},
      {"begin", begin},
      {"control dir", control_dir},
      {"room", room},
      {"guest memory", guest_memory},
      {"sampling", sampling},
      {"stacks", stacks},
      {"unknown word", unknown_word},
      {"unknown", unknown},
      {"known to others", known_to_others},
      {"strange", strange},
      {"visible", visible},
  };
  return check_main("config", cases, sizeof cases / sizeof *cases);
}
