// Package cshim holds all C of the preloaded library: hooks, records, the spool's writing side. It has no Go surface: the spool file is the only contract
// between the two halves (see spool.h), and importing the package links the C in.
package cshim

//go:generate go run ../internal/genadapters -scripts adapters -out adapterscripts.c

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra -Werror -fvisibility=hidden -fno-plt -ftls-model=initial-exec
#cgo LDFLAGS: -ldl -lpthread
*/
import "C"

// Linked lets the library's main refer to this package.
const Linked = true
