#define _GNU_SOURCE
#include "process/goend.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "process/boot.h"

#define MT_GO_END_STACK 65536

/* The first thread that comes here switches to a stack of its own, since its stack is a goroutine's, or overflowed. All
 * others stop: what they hold stays held. The runtime unblocks the signal by which it means to die; every other is
 * blocked on its threads, and that one is blocked again. */
#define MT_TEXT(x) MT_TEXT_(x)
#define MT_TEXT_(x) #x
static char stack[MT_GO_END_STACK] __attribute__((aligned(16), used));
static uint32_t taken __attribute__((used));
static const uint64_t all_signals __attribute__((used)) = MT_SYS_ALL_SIGNALS;
__attribute__((used)) static void first_end(void);

#if defined(__x86_64__)
__asm__(".pushsection .text, \"ax\", @progbits\n"
        ".globl mt_go_ended\n.hidden mt_go_ended\n.type mt_go_ended, @function\n"
        "mt_go_ended:\n"
        "  movl $14, %eax\n" /* rt_sigprocmask(SIG_SETMASK, all_signals) */
        "  movl $2, %edi\n"
        "  leaq all_signals(%rip), %rsi\n"
        "  xorl %edx, %edx\n"
        "  movl $8, %r10d\n"
        "  syscall\n"
        "  movl $1, %eax\n"
        "  xchgl %eax, taken(%rip)\n"
        "  testl %eax, %eax\n"
        "  jnz 1f\n"
        "  leaq stack+" MT_TEXT(MT_GO_END_STACK) "(%rip), %rsp\n"
        "  xorl %ebp, %ebp\n"
        "  cld\n"
        "  call first_end\n"
        "1:\n"
        "  movl $34, %eax\n" /* pause */
        "  syscall\n"
        "  jmp 1b\n"
        ".size mt_go_ended, . - mt_go_ended\n"
        ".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text, \"ax\", @progbits\n"
        ".globl mt_go_ended\n.hidden mt_go_ended\n.type mt_go_ended, %function\n"
        "mt_go_ended:\n"
        "  mov x8, #135\n" /* rt_sigprocmask(SIG_SETMASK, all_signals) */
        "  mov x0, #2\n"
        "  adrp x1, all_signals\n"
        "  add x1, x1, :lo12:all_signals\n"
        "  mov x2, xzr\n"
        "  mov x3, #8\n"
        "  svc #0\n"
        "  adrp x1, taken\n"
        "  add x1, x1, :lo12:taken\n"
        "  mov w0, #1\n"
        "0:\n"
        "  ldaxr w2, [x1]\n"
        "  stxr w3, w0, [x1]\n"
        "  cbnz w3, 0b\n"
        "  cbnz w2, 1f\n"
        "  adrp x1, stack+" MT_TEXT(MT_GO_END_STACK) "\n"
        "  add sp, x1, :lo12:stack+" MT_TEXT(MT_GO_END_STACK) "\n"
        "  mov x29, xzr\n"
        "  bl first_end\n"
        "1:\n"
        "  mov x0, xzr\n"
        "  mov x1, xzr\n"
        "  mov x2, xzr\n"
        "  mov x3, xzr\n"
        "  mov x8, #73\n" /* ppoll */
        "  svc #0\n"
        "  b 1b\n"
        ".size mt_go_ended, . - mt_go_ended\n"
        ".popsection\n");
#endif

static void first_end(void) { mt_boot_go_ended(); }

/* These replace functions of the C library for the runtime's C parts within the library: see --wrap in the Makefile. */

_Noreturn void __wrap_abort(void);
void __wrap_abort(void) { mt_go_ended(); }

/* The runtime's last messages, through the program's own stdio. */
int __wrap_fprintf(FILE *file, const char *format, ...);
int __wrap_fprintf(FILE *file, const char *format, ...) {
  (void)file, (void)format;
  return 0;
}
int __wrap_vfprintf(FILE *file, const char *format, va_list values);
int __wrap_vfprintf(FILE *file, const char *format, va_list values) {
  (void)file, (void)format, (void)values;
  return 0;
}
int __wrap_fputc(int c, FILE *file);
int __wrap_fputc(int c, FILE *file) {
  (void)file;
  return c;
}
size_t __wrap_fwrite(const void *from, size_t size, size_t count, FILE *file);
size_t __wrap_fwrite(const void *from, size_t size, size_t count, FILE *file) {
  (void)from, (void)size, (void)file;
  return count;
}
