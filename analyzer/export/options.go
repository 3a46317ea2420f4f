package export

import (
	"cmp"
	"time"

	"memtrace/analyzer"
	"memtrace/analyzer/render/phrase"
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// Options say what is exported of a set of stacks, and how.
type Options struct {
	Value   Value          // the one number of formats that take one, and the one that the others show first
	NoLines bool           // a function is one frame, whichever of its lines was at work
	Full    bool           // the stacks are not folded: draw every frame
	Writer  string         // the program that writes, with its version
	Modules []trace.Module // object files of the run
}

// command names the run for people.
func command(set *analyzer.StackSet) string {
	return cmp.Or(set.Process.Command, set.Process.Exe, "unknown program")
}

// started returns when the run began, the zero time where that is not known.
func started(set *analyzer.StackSet) time.Time {
	t, err := time.Parse(time.RFC3339Nano, set.Process.Started)
	if err != nil {
		return time.Time{}
	}
	return t
}

// levelName says what kind of memory a level counts.
func levelName(set *analyzer.StackSet) string {
	if set.Level == report.LevelFramework {
		return phrase.FrameworkBlocks(set.Versions)
	}
	return "Driver memory"
}
