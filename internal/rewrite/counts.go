package rewrite

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
