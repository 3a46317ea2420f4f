package hostile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What a killed process left was shown by `ls` as 140 MiB, twice the documented limit of its spool. It takes disk space
// only where it was written to, and the documentation explains both figures.
func TestKilledSpoolTakesWhatItHolds(t *testing.T) {
	t.Parallel()
	b := startBusy(t, 1, 1000, nil)
	b.cmd.Process.Kill()
	b.cmd.Wait()
	spools, err := filepath.Glob(filepath.Join(b.dir, "*.spool"))
	if err != nil || len(spools) != 1 {
		t.Fatalf("%v: %v", err, spools)
	}
	info, err := os.Stat(spools[0])
	if err != nil {
		t.Fatal(err)
	}
	held := info.Sys().(*syscall.Stat_t).Blocks * 512
	if held == 0 || held > 16<<20 {
		t.Errorf("the spool takes %d bytes on the disk", held)
	}
	const documented = "`ls` shows the size of its address range, 140 MiB by default"
	if text, err := os.ReadFile("../../docs/environment.md"); err != nil ||
		!strings.Contains(string(text), documented) {
		t.Errorf("docs/environment.md does not say %q: %v", documented, err)
	}
	if mib := (info.Size() + 1<<19) >> 20; mib != 140 {
		t.Errorf("the spool's address range has %d MiB, docs/environment.md says 140", mib)
	}
}
