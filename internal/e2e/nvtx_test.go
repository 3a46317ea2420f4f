//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// runRanges runs ranges.py under a framework, with or without the library.
func runRanges(t *testing.T, framework string, plain bool, env ...string) *result {
	t.Helper()
	return program{framework: framework, args: []string{"ranges.py"}, plain: plain, env: env}.record(t)
}

// torch's ranges name allocations, marks are there, and the program can see no difference.
func TestTorchNvtx(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		t.Run(framework, func(t *testing.T) {
			t.Parallel()
			r, without := runRanges(t, framework, false), runRanges(t, framework, true)
			if r.stdout != without.stdout || r.stderr != without.stderr {
				t.Errorf("with the library\n%s%s\nwithout\n%s%s", r.stdout, r.stderr, without.stdout, without.stderr)
			}
			rep := jsonReport(t, r.trace, "--by", "tag")
			blocks := map[string]uint64{}
			for _, g := range rep.Groups {
				for _, row := range g.Rows {
					if g.Level == "framework" && g.By == "tag" {
						blocks[row.Key] += row.AllocCount
					}
				}
			}
			for tag, want := range map[string]uint64{"outer": 1, "outer.inner": 1} {
				equal(t, "blocks of "+tag, blocks[tag], want)
			}
			backward := uint64(0)
			for tag, n := range blocks {
				if strings.Contains(tag, "MmBackward0") && strings.HasSuffix(tag, "aten::mm") {
					backward += n
				}
				if strings.Contains(tag, "seq = ") || strings.Contains(tag, "op_id") || strings.Contains(tag, "sizes") {
					t.Errorf("tag %q differs in every step", tag)
				}
			}
			if backward < 40 {
				t.Errorf("%d blocks of backward's multiplications in 20 steps: %v", backward, blocks)
			}
			dump := memtrace(t, "dump", r.trace)
			for _, mark := range []string{"loaded", "span begin", "span end"} {
				if !strings.Contains(dump, mark) {
					t.Errorf("no mark %q", mark)
				}
			}
		})
	}
}

// Switched off, the program is the same and nothing has a name.
func TestTorchNvtxOff(t *testing.T) {
	t.Parallel()
	extended(t)
	r := runRanges(t, torch27, false, "MEMTRACE_NVTX=0")
	for _, g := range jsonReport(t, r.trace, "--by", "tag").Groups {
		for _, row := range g.Rows {
			if strings.Contains(row.Key, "outer") || strings.Contains(row.Key, "aten") {
				t.Errorf("tag %q", row.Key)
			}
		}
	}
}
