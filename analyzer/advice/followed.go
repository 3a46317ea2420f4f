package advice

import (
	"strings"

	"memtrace/analyzer/report"
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

// activationWords are the sentences about feature maps: those of them that the run does not follow.
func (f Followed) activationWords(e *report.OOMEvent) string {
	text := "Activations (feature maps) of this iteration hold {held}, {share} of what is in use. " +
		"Half the batch gives back about {frees}."
	if !f.Checkpointing {
		text += " Gradient checkpointing (torch.utils.checkpoint) gives back most of them for one more forward pass."
	}
	if !f.Autocast && !f.Nameless && !e.Seen.Autocast {
		text += " Half precision (torch.autocast) halves those in single precision."
	}
	return text
}
