#define _GNU_SOURCE
#include "allocator/filesymbol.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"

#define MT_FILE_MAX (64 << 20) /* bytes; libc10_cuda.so has two million */

/* The file in memory. Its offsets are checked. */
struct file {
  const char *data;
  uint64_t size;
};

static bool holds(const struct file *f, uint64_t at, uint64_t size) { return at <= f->size && size <= f->size - at; }

static const ElfW(Shdr) *section(const struct file *f, unsigned n) {
  const ElfW(Ehdr) *head = (const void *)f->data;
  if (n >= head->e_shnum || head->e_shentsize != sizeof(ElfW(Shdr)) || head->e_shoff % sizeof(uint64_t)) return NULL;
  uint64_t at = head->e_shoff + (uint64_t)n * sizeof(ElfW(Shdr));
  return head->e_shoff <= f->size && holds(f, at, sizeof(ElfW(Shdr))) ? (const void *)(f->data + at) : NULL;
}

static bool is_named(const char *name, const char *wanted) {
  size_t length = strlen(wanted);
  if (wanted[length - 1] != '*') return !strcmp(name, wanted);
  return !strncmp(name, wanted, length - 1) && !strchr(name + length - 1, '.');
}

static void compare(const char *name, const ElfW(Sym) *s, struct mt_filesymbol *wanted, unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    if (!is_named(name, wanted[i].name)) continue;
    wanted[i].value = s->st_value;
    wanted[i].size = s->st_size;
    wanted[i].found++;
  }
}

static bool read_table(const struct file *f, const ElfW(Shdr) *table, struct mt_filesymbol *wanted, unsigned count) {
  const ElfW(Shdr) *texts = section(f, table->sh_link);
  if (!texts || !texts->sh_size || table->sh_offset % sizeof(uint64_t) || !holds(f, table->sh_offset, table->sh_size) ||
      !holds(f, texts->sh_offset, texts->sh_size))
    return false;
  const char *text = f->data + texts->sh_offset;
  if (text[texts->sh_size - 1]) return false;
  const ElfW(Sym) *symbols = (const void *)(f->data + table->sh_offset);
  for (uint64_t i = 0; i < table->sh_size / sizeof *symbols; i++)
    if (symbols[i].st_shndx != SHN_UNDEF && symbols[i].st_name < texts->sh_size)
      compare(text + symbols[i].st_name, &symbols[i], wanted, count);
  return true;
}

static bool read_file(const struct file *f, struct mt_filesymbol *wanted, unsigned count) {
  const ElfW(Ehdr) *head = (const void *)f->data;
  if (f->size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) || head->e_ident[EI_CLASS] != ELFCLASS64)
    return false;
  for (unsigned n = 0; n < head->e_shnum; n++) {
    const ElfW(Shdr) *s = section(f, n);
    if (!s) return false;
    if (s->sh_type == SHT_SYMTAB) return read_table(f, s, wanted, count);
  }
  return false;
}

/* Copied, not mapped: a file that is cut meanwhile would kill the program. */
static bool copy(int file, char *to, uint64_t size) {
  for (uint64_t at = 0; at < size;) {
    ssize_t got = mt_sys_pread(file, to + at, size - at, at);
    if (got <= 0) return false;
    at += (uint64_t)got;
  }
  return true;
}

bool mt_filesymbol_find(const char *path, struct mt_filesymbol *wanted, unsigned count) {
  struct stat about;
  int file = mt_sys_open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
  bool good = false;
  for (unsigned i = 0; i < count; i++) wanted[i].found = 0;
  if (file < 0) return false;
  uint64_t size =
      !mt_sys_fstat(file, &about) && S_ISREG(about.st_mode) && about.st_size > 0 && about.st_size <= MT_FILE_MAX
          ? (uint64_t)about.st_size
          : 0;
  char *data = size ? mt_sys_pages_alloc(size) : NULL;
  if (data) {
    good = copy(file, data, size) && read_file(&(struct file){data, size}, wanted, count);
    mt_sys_munmap(data, size);
  }
  mt_sys_close(file);
  return good;
}
