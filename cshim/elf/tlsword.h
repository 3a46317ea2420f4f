/* Thread-local variables of a loaded object that exports only functions around them. The word of the object's TLS block
 * that holds a variable is found by comparing the block with the function's result at several times; its offset is the
 * same in every thread. */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#define MT_TLSWORD_MAX 8192u /* words of a block; a larger one is not searched */
#define MT_TLSWORD_NONE UINT32_MAX

struct mt_tlsblock {
  uint64_t module; /* the loader's number of the object, 0: there is none, or no way to it */
  uint32_t words;
};

/* The words that may still be the variable: those that are not out. */
struct mt_tlsword {
  uint64_t out[MT_TLSWORD_MAX / 64];
};

/* The same of a flag, in a small block. Nothing else in its word changes meanwhile: many bits of a pointer come and go
 * with a flag. */
#define MT_TLSBIT_MAX 128u /* words */
struct mt_tlsbit {
  uint64_t first[MT_TLSBIT_MAX], changed[MT_TLSBIT_MAX], out[MT_TLSBIT_MAX];
  bool was[2]; /* whether the flag was seen so */
};

/* The TLS block of an object, from dl_iterate_phdr(3) in a thread that has used its variables already. */
struct mt_tlsblock mt_tlsblock_of(const struct dl_phdr_info *info, size_t size);

/* The calling thread's block, or NULL. The object's own functions must have used it in this thread before: the first
 * use allocates it. */
const uint64_t *mt_tlsblock_here(const struct mt_tlsblock *block);

/* Leaves those words that hold the value in the calling thread now. The search begins as zero. */
void mt_tlsword_narrow(struct mt_tlsword *search, const struct mt_tlsblock *block, uint64_t value);

/* The index of the only word that is left, or MT_TLSWORD_NONE. */
uint32_t mt_tlsword_found(const struct mt_tlsword *search, const struct mt_tlsblock *block);

/* Leaves those bits that are as the flag is in the calling thread now. The search begins as zero. */
void mt_tlsbit_narrow(struct mt_tlsbit *search, const struct mt_tlsblock *block, bool flag);

/* The number of the only bit that is left, counted from the lowest of the first word, if the flag was seen set and
 * clear; or MT_TLSWORD_NONE. */
uint32_t mt_tlsbit_found(const struct mt_tlsbit *search, const struct mt_tlsblock *block);
