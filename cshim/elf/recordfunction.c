#include "elf/recordfunction.h"

#include "elf/symbol.h"

bool mt_record_function_set(bool enabled) {
  struct mt_loaded torch = mt_symbol_object("libtorch_cpu.so");
  bool (*is)(void) = (bool (*)(void))mt_symbol_find(&torch, "_ZN2at23isRecordFunctionEnabledEv");
  void (*set)(bool) = (void (*)(bool))mt_symbol_find(&torch, "_ZN2at20enableRecordFunctionEb");
  bool before = !is || !set || is();
  if (is && set && before != enabled) set(enabled);
  return before;
}
