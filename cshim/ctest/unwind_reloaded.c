/* Built twice, with frames of another width: what the unwinder knows of the one is wrong for the other. */
__attribute__((visibility("default"))) void unwind_reloaded(void (*end)(void)) {
  char room[WIDTH];
  __asm__ volatile("" : : "r"(room) : "memory");
  end();
  __asm__ volatile("" : : "r"(room) : "memory");
}
