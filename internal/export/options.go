package export

import (
	"cmp"
	"time"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/trace"
)

// Options select what is exported of a set of stacks, and how.
type Options struct {
	Value   Value          // the number in formats with one number, and the first one shown in the others
	NoLines bool           // a function is one frame, for all of its lines
	Full    bool           // the stacks are not folded: draw every frame
	Writer  string         // the program that writes, with its version
	Modules []trace.Module // object files of the run
}

// command is the displayed name of the run.
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

// levelName is the kind of memory of a level.
func levelName(set *analyzer.StackSet) string {
	if set.Level == report.LevelFramework {
		return layout.FrameworkBlocks(set.Versions)
	}
	return "Driver memory"
}
