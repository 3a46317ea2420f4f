package callstack

import (
	"regexp"
	"testing"

	"memtrace/internal/symbol"
)

// A filter means a frame by what reports show of it, its file and line included: `--focus train.py:97` was refused for
// lines that are not the place of the allocation.
func TestMatches(t *testing.T) {
	f := &Frame{Frame: symbol.Frame{Kind: symbol.Python, Function: "step", File: "/work/train.py", Line: 97}}
	native := &Frame{Frame: symbol.Frame{Function: "cudaMalloc"}}
	for pattern, want := range map[string]bool{"train.py:97": true, `^/work/train\.py:97$`: true, "step": true,
		`\.py$`: true, "train.py:9$": false, "train.py:98": false, ":0": false} {
		re := regexp.MustCompile(pattern)
		if got := f.Matches(re); got != want {
			t.Errorf("%s: %v", pattern, got)
		}
		if native.Matches(re) {
			t.Errorf("%s: a function without a file", pattern)
		}
	}
}
