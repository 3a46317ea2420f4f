#define _GNU_SOURCE
#include "interpreter.h"
#include "python.h"

void mt_python_turn(void) { mt_interpreter_tell(); }
