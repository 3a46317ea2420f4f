// Package oom turns refused allocations into events of memory running out, with who held the memory then. Tracker does
// so for readers, Watch inside of the program while it runs.
package oom
