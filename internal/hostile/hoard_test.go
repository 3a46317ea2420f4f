package hostile

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/spool"
	"memtrace/trace"
)

// hoardBlocks is how many blocks are live at once; HOARD_BLOCKS is for the long form.
func hoardBlocks(t *testing.T) int {
	text := os.Getenv("HOARD_BLOCKS")
	if text == "" {
		return 400_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// runHoard runs the guest and returns the KiB of its own memory.
func runHoard(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return most
}

// A program that holds ten million blocks grew by a gigabyte under the recorder: the replay for OOM reports had no
// bound. Past MEMTRACE_GUEST_MEMORY it is given up, and the report has what the text would have had.
func TestManyLiveBlocks(t *testing.T) {
	t.Parallel()
	blocks := hoardBlocks(t)
	for _, c := range []struct {
		memory string
		mib    int
		texts  bool
		// a Go runtime and what it has at work take some 25 MiB, whatever is live
	}{{"", 256, blocks < 3_000_000}, {"16M", 48, false}, {"0", 32, false}} {
		t.Run("MEMTRACE_GUEST_MEMORY="+c.memory, func(t *testing.T) {
			var settings []string
			if c.memory != "" {
				settings = append(settings, "MEMTRACE_GUEST_MEMORY="+c.memory)
			}
			cmd, path := stormGuest(t, "hoard", settings, strconv.Itoa(blocks))
			plain := exec.Command(cmd.Path, cmd.Args[1:]...)
			plain.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(numbersDriver(t)))
			without, with := runHoard(t, plain), runHoard(t, cmd)
			t.Logf("%d MiB of its own, %d MiB without the library", with>>10, without>>10)
			if with-without > c.mib<<10 {
				t.Errorf("%d KiB of its own, %d KiB without the library: more than %d MiB apart", with, without, c.mib)
			}
			checkHoard(t, path, uint64(blocks))
			texts, _ := filepath.Glob(path + ".oom.*.txt")
			if (len(texts) == 1) != c.texts {
				t.Errorf("texts about running out of memory: %v", texts)
			}
			var report report.Summary
			runJSON(t, &report, "report", "--json", path)
			if reported := strings.Contains(strings.Join(report.Notes, " "),
				"own table of live memory was"); reported ==
				c.texts {
				t.Errorf("the report says nothing of a table that was given up, or speaks of one that was not: %q",
					report.Notes)
			}
			if live := uint64(blocks / 2 * 512); len(report.OOM.Events) != 1 || report.OOM.Events[0].DriverBytes !=
				live || report.Driver.LiveBytes != live || report.Driver.PeakBytes != 2*live {
				t.Errorf("of %d live bytes the report tells %+v and %+v", live, report.Driver, report.OOM.Events)
			}
		})
	}
}

// checkHoard checks that the trace has everything.
func checkHoard(t *testing.T, path string, blocks uint64) {
	t.Helper()
	run, err := spool.OpenRun(path)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	var allocs, frees, refused uint64
	for {
		events, err := run.ReadBatch()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			switch e := &events[i]; {
			case e.Kind == trace.EventAlloc && e.Status != 0:
				refused++
			case e.Kind == trace.EventAlloc:
				allocs++
			case e.Kind == trace.EventFree:
				frees++
			}
		}
	}
	lost, _, _ := run.Lost()
	if h := run.Health(); allocs != blocks || frees != blocks/2 || refused != 1 || lost != 0 || h.Gaps != 0 ||
		run.Ended() != spool.EndedClean {
		t.Errorf("%d allocations, %d frees, %d refused, %d lost of %d blocks, %+v", allocs, frees, refused,
			lost, blocks, h)
	}
}
