// Package scrub makes traces fit to be given away. Strip removes what is not needed to read one elsewhere; Anonymizer
// also replaces the names that belong to its owner. Both are trace.Editors: events, stacks and all numbers stay as they
// are, the addresses in stacks and of Python objects included.
//
// Both go by what they let through, not by what they take away: a fact about the run that they do not know is left out,
// a name that is not known to belong to CPython, to an installed package, to the system or to memtrace is the user's.
package scrub

// Counts holds what an edit removed or replaced, by kind, for display.
type Counts map[string]int

// The kinds of Counts.
const (
	CountPaths   = "paths shortened"
	CountNames   = "names replaced"
	CountInfo    = "facts about the run left out or shortened"
	CountSymbols = "symbols left out"
	CountLines   = "line tables left out"
	CountReports = "reports of running out of memory edited"
)
