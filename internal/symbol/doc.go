// Package symbol gives code addresses and Python frames of a trace their names: function, file, line and the functions
// that were inlined there.
//
// It works after the run and outside of the program. The identity of an object file in a trace (path, build-id, or size
// and time) is compared with the file before anything is read from it: a file that is not the one of the run is
// reported and never used.
//
// # Sources, in this order
//
//  1. symbols that were embedded in the trace
//  2. the object file itself: .symtab, then .dynsym, DWARF
//  3. its separate debug file, by build-id or by .gnu_debuglink
//  4. for code outside of every module: the map that a compiler wrote for perf
//
// An address belongs to a symbol only inside of the symbol's size. Outside, the function's bounds come from the unwind
// table (.eh_frame_hdr), so that all addresses of one nameless function share a name such as "libcuda.so.1+0x1f00", and
// no address gets the name of its neighbour.
//
// # Addresses
//
// Stacks hold return addresses. Native takes one unchanged and looks up the byte before it, which belongs to the call.
package symbol
