package cause

import (
	"slices"
	"testing"

	"memtrace/analyzer/report"
)

// TestNotesAreFindings: every note is a finding of its own kind, and has evidence.
func TestNotesAreFindings(t *testing.T) {
	seen := make(map[string]bool)
	for _, n := range notes {
		if seen[n.id] || len(n.evidence) == 0 ||
			!slices.ContainsFunc(report.FindingKinds, func(k report.FindingKind) bool { return k.ID == n.id }) {
			t.Errorf("note %q stands there twice, rests on nothing or is not among finding.Kinds", n.id)
		}
		seen[n.id] = true
	}
}

// TestNotesHaveTheirBytes: a note about memory has an amount.
func TestNotesHaveTheirBytes(t *testing.T) {
	s := &report.Summary{Implicit: map[string]report.ImplicitFrees{"driver": {Count: 1, Bytes: 512},
		"managed": {Count: 2, Bytes: 1024}}}
	s.Driver.AllocCount = 1
	for _, f := range Notes(s, nil) {
		if f.ID == "implicit-frees" && f.Bytes == 1536 {
			return
		}
	}
	t.Errorf("%+v", Notes(s, nil))
}
