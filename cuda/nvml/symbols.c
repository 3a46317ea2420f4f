//go:build cgo && linux && (amd64 || arm64)

/*
 * Stand-ins for the functions of the vendor's library.
 *
 * go-nvml calls NVML by name and leaves the names undefined, for the dynamic linker to find once the library was
 * loaded. That works only with lazy binding: with LD_BIND_NOW=1, or linked with -z now, the command would not even
 * start. So every name is defined here, as a jump through a slot.
 *
 * Invariants
 * 1. A slot leads to nvml_symbol_missing until mt_nvml_symbols_bind has found the function. Otherwise a driver that
 * lacks one would be called at address 0.
 * 2. The names are hidden. Otherwise the vendor's library, which calls some of its own functions by name, would find
 * ours.
 * 3. Arguments and result pass through untouched: a jump, no call, and no register changes but the instruction pointer,
 * on Arm also x16, which is the linker's own.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "symbols.h"

static int nvml_symbol_missing(void) { return 13; /* NVML_ERROR_FUNCTION_NOT_FOUND */ }

#if defined(__x86_64__)
#define NVML_JUMP(slot) "\tjmp *" slot "(%rip)\n"
#elif defined(__aarch64__)
#define NVML_JUMP(slot) "\tadrp x16, " slot "\n\tldr x16, [x16, :lo12:" slot "]\n\tbr x16\n"
#endif

#define NVML_SYMBOL(name)                                                                               \
  __attribute__((visibility("hidden"), used)) void *mt_nvml_slot_##name = (void *)nvml_symbol_missing;  \
  __asm__(".pushsection .text\n"                                                                        \
          ".globl " #name "\n"                                                                          \
          ".hidden " #name "\n"                                                                         \
          ".type " #name ", @function\n" #name ":\n"                                                    \
          NVML_JUMP("mt_nvml_slot_" #name)                                                              \
          ".size " #name ", . - " #name "\n"                                                            \
          ".popsection\n");
#include "symbols_list.h"
#undef NVML_SYMBOL

static const struct {
  const char *name;
  void **slot;
} symbols[] = {
#define NVML_SYMBOL(name) {#name, &mt_nvml_slot_##name},
#include "symbols_list.h"
#undef NVML_SYMBOL
};

void mt_nvml_symbols_bind(void *library) {
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *function = library ? dlsym(library, symbols[i].name) : NULL;
    *symbols[i].slot = function ? function : (void *)nvml_symbol_missing;
  }
}
