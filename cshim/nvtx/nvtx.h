/* NVTX: ranges of the program become tags, marks become marks. NVTX loads the library that NVTX_INJECTION64_PATH names
 * (NVTX 3, nvtxDetail/nvtxInit.h); where it is not set, the getenv of this library returns its own path for that one
 * name, and the environment stays unchanged. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/memtrace.h"

/* Once, when the library is loaded: finds the next getenv. */
void mt_nvtx_load(void);

/* When recording starts: records whether another tool has NVTX. */
void mt_nvtx_note(void);

/* Whether NVTX may be used at all in this process. */
bool mt_nvtx_wanted(void);

/* A name as the report will show it: UTF-8, cut at a character's end. */
struct mt_nvtx_name {
  uint16_t size;
  char text[MEMTRACE_NAME_MAX];
};

void mt_nvtx_add(struct mt_nvtx_name *name, const char *text);
void mt_nvtx_add_wide(struct mt_nvtx_name *name, const wchar_t *text);

/* A registered string or a domain: what an NVTX handle points to. Never freed, since a handle has no end; valid in
 * forked children. */
struct mt_nvtx_string;
enum mt_nvtx_kind { MT_NVTX_TEXT = 1, MT_NVTX_DOMAIN = 2 };

/* The one handle for this kind and name; an unnamed one when there is no room. Never NULL. */
const struct mt_nvtx_string *mt_nvtx_intern(enum mt_nvtx_kind kind, const struct mt_nvtx_name *name);

/* The text of a handle and its size; 0 for handles that mt_nvtx_intern did not make, whatever they point to. */
size_t mt_nvtx_text(enum mt_nvtx_kind kind, const void *handle, const char **text);

/* Whose levels on a thread's tag stack the ranges of this domain are: differs for each domain; NULL is NVTX's default
 * domain. */
uint32_t mt_nvtx_owner(const void *domain);
