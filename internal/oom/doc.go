// Package oom turns refused allocations into events of memory running out, with who held the memory then, what to do
// about it, and what each suggestion would give back. Tracker does so for readers, Watch inside of the program while it
// runs.
package oom
