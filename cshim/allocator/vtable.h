/* The virtual functions of torch's caching allocator (NativeCachingAllocator, c10/cuda/CUDACachingAllocator.cpp), which
 * cannot be interposed by name: some are replaced in its vtable. Their addresses come from the symbol table of the
 * library's file, which must be unstripped; each must be in the vtable once, and the vtable must be that of the
 * allocator in use. */
#pragma once

/* torch's allocator is in use, or about to be: replaces the functions, once, and notes for memtrace info what
 * succeeded. Waits for the loader. */
void mt_allocator_attach(void);

/* A block was reported: the allocator's functions can be called now. Once. */
void mt_allocator_first_block(void);

/* Notes it again in a new recording. From the polling thread. */
void mt_allocator_poll(void);
