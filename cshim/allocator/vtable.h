/* The virtual functions of torch's caching allocator, which nobody can get between by name: those of which something is
 * to be told are replaced in the allocator's own table. Their addresses come from the names in the library's file,
 * which must be unstripped; each must stand in the table once, and the table be that of the allocator in use. */
#pragma once

/* torch's allocator works, or is about to: gets between it and its callers, once, and notes for memtrace info what
 * could be had and what not. Waits for the loader. */
void mt_allocator_attach(void);

/* A block was reported: the allocator can be asked now. Once. */
void mt_allocator_first_block(void);

/* Notes it again where a new recording began. From a thread of ours, at every turn. */
void mt_allocator_poll(void);
