package oom

import (
	"strings"

	"memtrace/trace"
)

// Followed is what a run does already, so that nobody is told to do it.
type Followed struct {
	Checkpointing bool // part of the forward pass runs under torch.utils.checkpoint
	// part of the program runs under torch.autocast, as a decorator; as a with statement see report.OOMSeen
	Autocast bool
	// names of native functions are not known, so that nobody can tell whether autocast runs as a with statement
	Nameless bool
}

// FollowedBy reads it off the functions that stand in the run's call stacks.
func FollowedBy(tables *trace.Tables) (f Followed) {
	for code := range tables.Codes() {
		switch {
		case strings.HasSuffix(code.File, "torch/utils/checkpoint.py") && code.Name != "<module>":
			f.Checkpointing = true
		case strings.HasSuffix(code.File, "torch/amp/autocast_mode.py") && code.Name != "<module>":
			f.Autocast = true
		}
	}
	return f
}
