#include "elf/profiled.h"

#include "elf/symbol.h"

bool mt_profiled_set(bool told) {
  struct mt_loaded torch = mt_symbol_object("libtorch_cpu.so");
  bool (*is)(void) = (bool (*)(void))mt_symbol_find(&torch, "_ZN2at23isRecordFunctionEnabledEv");
  void (*set)(bool) = (void (*)(bool))mt_symbol_find(&torch, "_ZN2at20enableRecordFunctionEb");
  bool before = !is || !set || is();
  if (is && set && before != told) set(told);
  return before;
}
