/* A slow and obvious reader of the spool, written from spool.h alone: what the C half did is compared with what this
 * finds in the file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../spool.h"

struct oracle {
  char *base;
  size_t size;
  struct mt_spool_header *header;
};

struct oracle_record {
  struct mt_record record;
  uint32_t ring;
};

/* Maps the spool at path, writable so that oracle_drain works. False if there is none or its header is not as spool.h
 * says. */
bool oracle_open(struct oracle *o, const char *path);
void oracle_close(struct oracle *o);

/* Uses a mapping that is there already: what the recorder's threads and this one do to the same words is then visible
 * to the thread sanitizer. */
bool oracle_attach(struct oracle *o, void *base, size_t size);

/* Copies every committed record that is not yet drained into a fresh array, in order of the numbers; the caller frees
 * it. */
size_t oracle_records(const struct oracle *o, struct oracle_record **records);

/* Does what a drainer does: takes what is there, gives segments and the rings of ended threads back. Returns the
 * records like oracle_records. */
size_t oracle_drain(struct oracle *o, struct oracle_record **records);

/* The dictionary's entry, NULL if it is absent or of another kind. */
const void *oracle_entry(const struct oracle *o, uint32_t id, enum mt_dict_kind kind, uint32_t *length);

/* True if entry id is that text. */
bool oracle_text_is(const struct oracle *o, uint32_t id, const char *text);

/* Entries of a kind, or of all kinds for 0. */
unsigned oracle_entries(const struct oracle *o, uint32_t kind);

/* Records that the rings dropped. */
uint64_t oracle_lost(const struct oracle *o);
