// Package rewrite makes traces out of traces: Thinner leaves out blocks of old parts that no moment which counts needs,
// Live keeps what is live at the end, and Strip and Anonymizer make a trace fit to be given away.
//
// These two are trace.Editors: events, stacks and all numbers stay as they are, the addresses in stacks and of Python
// objects included. They go by what they let through, not by what they take away: a fact about the run that they do not
// know is left out, a name that is not known to belong to CPython, to an installed package, to the system or to
// memtrace is the user's.
package rewrite
