//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/guest"
)

// TestLeakOfARank: of four ranks that train the same model by DistributedDataParallel, or in shards, the one that keeps
// the output of every step is named with the line, from traces and from profiles alike.
func TestLeakOfARank(t *testing.T) {
	t.Parallel()
	extended(t)
	const model = 4 * (256*1024 + 1024 + 1024*1024 + 1024 + 1024*64 + 64) // bytes of its parameters
	for wrap, parameters := range map[string]uint64{"ddp": model, "fsdp2": model / 4} {
		t.Run(wrap, func(t *testing.T) {
			t.Parallel()
			leakOfARank(t, wrap, parameters)
		})
	}
}

// leakOfARank trains with a wrapper, of which each rank has so many bytes of parameters.
func leakOfARank(t *testing.T, wrap string, parameters uint64) {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(guest.Root(), "testdata/train/ranks.py"))
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(script), "history.append(")
	line := fmt.Sprintf("It was allocated at train/ranks.py:%d train.", 1+strings.Count(before, "\n"))
	cmd, r := program{framework: torch27, args: []string{"ranks.py", "4", "2", wrap},
		env: []string{"NULLCUDA_DEVICES=4", "MEMTRACE_OUTPUT=DIR/rank%r.bin"}}.start(t)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	held := under(jsonReport(t, filepath.Join(r.dir, "rank0.bin"), "--by", "category").Categories[0], "Parameters")
	if held < parameters || held > parameters+6*512 { // each is rounded up
		t.Errorf("a rank has %d bytes of parameters, not %d", held, parameters)
	}
	memtrace(t, "profile", r.dir)
	profiles := t.TempDir()
	for _, name := range []string{"rank0", "rank1", "rank2", "rank3"} {
		info, err := os.Stat(filepath.Join(r.dir, name+".mtp"))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() < 2_000 || info.Size() > 50_000 {
			t.Errorf("the profile of %s has %d bytes", name, info.Size())
		}
		if err := os.Rename(filepath.Join(r.dir, name+".mtp"), filepath.Join(profiles, name+".mtp")); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{r.dir, profiles} {
		text := strings.Join(strings.Fields(memtrace(t, "report", folder)), " ")
		for _, want := range []string{"4 processes, with peaks from ", "; 3 of them are alike",
			"Rank 2 differs most. Compared with rank ",
			"Its memory grows by ", "512.0 KiB per iteration", line} {
			if !strings.Contains(text, want) {
				t.Errorf("nothing says %q:\n%s", want, text)
			}
		}
		if n := strings.Count(text, "differs most."); n != 1 {
			t.Errorf("%d ranks differ:\n%s", n, text)
		}
	}
}
