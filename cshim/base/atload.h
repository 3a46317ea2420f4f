/* Where variables lie that are written while the library is loaded: together, on a page that the loader writes to
 * anyway (interpose/lazy.ld). Every further page costs each process a page fault, whether it uses CUDA or not. They
 * share cache lines, so nothing writes to them often later. */
#pragma once

#define MT_AT_LOAD __attribute__((section(".bss.mt_at_load")))
