// Package analyzer turns the events of a trace into numbers: what was live, what stood at the peak, who owned it.
//
// Package heap replays events and says which blocks opened and closed. The replayer behind Summarize hands that to the
// rooms below this package, in one pass, with memory bounded by the blocks that are live at once and the number of
// distinct keys, never by the length of the trace. Reports are plain values of package report; package diff compares
// two of them, package render writes them.
//
// # Accounts
//
// Blocks belong to accounts that are never added up. The driver account holds what occupies a device (device, async,
// VMM and array memory, variables of modules), the framework account holds the blocks that a framework's allocator cuts
// out of driver memory; managed, pinned host, registered and foreign memory, reserved addresses, allocation nodes of
// graphs, multicast objects, and memory of unknown kind, have an account each.
//
// The driver level says what the program asked for. What that takes on the device, and what memory pools keep beyond
// it, stands beside it: see report.DeviceSizes.
//
// # Order
//
// Events come in the order of their sequence numbers except late ones, which stand in the file behind events that
// happened after them. The rules that keep a late event from corrupting the replay are stated at heap.Heap.
package analyzer
