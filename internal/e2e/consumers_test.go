//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/guest"
)

// besideProgram trains under PyTorch while something else holds memory of the CUDA runtime's.
var besideProgram = program{framework: torch27, args: []string{"beside.py", "--steps", "3"}}

// readWith runs a Python script on a file and decodes the JSON that it prints.
func readWith(t *testing.T, python, script string, into any, args ...string) {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(python, append([]string{filepath.Join(guest.Root(), "testdata", "python", script)}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, stderr.Bytes())
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatal(err)
	}
}

// TestPerfettoReads: Perfetto's own classes read the trace without a field that they do not know; its counters are the
// report's figures, and at the peak those of its categories.
func TestPerfettoReads(t *testing.T) {
	t.Parallel()
	extended(t)
	r := besideProgram.record(t)
	file := filepath.Join(t.TempDir(), "t.pftrace")
	memtrace(t, "-q", "export", "perfetto", "-o", file, r.trace)
	var tracks struct {
		Counters map[string][][2]int64
		Slices   map[string][][3]any
		Instants [][2]any
		Units    []string
	}
	readWith(t, filepath.Join(pythonTools(t, "internal/tools/perfetto-requirements.txt"), "python"),
		"perfetto_tracks.py", &tracks, file)
	counter := func(end string) (highest, latest uint64, values [][2]int64) {
		for path, list := range tracks.Counters {
			if strings.HasSuffix(path, end) {
				for _, v := range list {
					highest, latest = max(highest, uint64(v[1])), uint64(v[1])
				}
				return highest, latest, list
			}
		}
		t.Errorf("no counter %q", end)
		return 0, 0, nil
	}
	rep := jsonReport(t, r.trace)
	for track, want := range map[string]report.Level{"/driver memory, device 0": rep.Driver,
		"/PyTorch blocks, device 0": rep.Framework} {
		highest, latest, values := counter(track)
		equal(t, track+" highest", highest, want.PeakBytes)
		equal(t, track+" latest", latest, want.LiveBytes)
		equal(t, track+" values", uint64(len(values)), want.AllocCount+want.FreeCount)
	}
	highest, _, _ := counter("/reserved by PyTorch, device 0")
	equal(t, "reserved", highest, rep.Devices[0].ReservedBytesPeak)
	sorted := jsonReport(t, r.trace, "--by", "category").Categories
	if len(sorted[0].Rows) < 4 {
		t.Fatalf("%+v", sorted)
	}
	for _, row := range sorted[0].Rows {
		at := uint64(0)
		for _, v := range tracks.Counters[findTrack(tracks.Counters, "/By category/"+row.Key)] {
			if v[0] <= sorted[0].TimeNS {
				at = uint64(v[1])
			}
		}
		equal(t, "at the peak: "+row.Key, at, row.Bytes)
	}
	slices := fmt.Sprint(tracks.Slices)
	for _, text := range []string{"step 0", "step 2", "forward", "backward", "optimizer"} {
		if !strings.Contains(slices, text) {
			t.Errorf("no slice %s", text)
		}
	}
	if said := fmt.Sprint(tracks.Instants); !strings.Contains(said, "trained") || !strings.Contains(said, "peak: ") ||
		fmt.Sprint(tracks.Units) != "[UNIT_SIZE_BYTES]" {
		t.Errorf("instants %s, units %s", said, tracks.Units)
	}
}

func findTrack(counters map[string][][2]int64, end string) string {
	for path := range counters {
		if strings.HasSuffix(path, end) {
			return path
		}
	}
	return ""
}

// pythonTools installs a list of pinned packages into the cache and returns the folder of its commands.
func pythonTools(t *testing.T, list string) string {
	t.Helper()
	install := exec.Command("scripts/python-tools.sh", list)
	install.Dir, install.Stderr = guest.Root(), os.Stderr
	out, err := install.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestMemoryVizReads: PyTorch's own functions, those of an old and of a new version, read the snapshot, and a trace
// that is made of it again has the figures of the one that it was made of.
func TestMemoryVizReads(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, mode := range []string{"expandable_segments:False", "expandable_segments:True"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := besideProgram
			p.env = []string{"PYTORCH_CUDA_ALLOC_CONF=" + mode}
			r := p.record(t)
			for _, moment := range []string{"exit", "peak", "mark:trained"} {
				folder := t.TempDir()
				file, again := filepath.Join(folder, "t.pickle"), filepath.Join(folder, "again.bin")
				memtrace(t, "-q", "export", "memory_viz", "-f", "--at", moment, "-o", file, r.trace)
				memtrace(t, "-q", "import", "-f", "-o", again, file)
				checkSnapshot(t, r, moment, file, again)
			}
		})
	}
}

func checkSnapshot(t *testing.T, r *result, moment, file, again string) {
	t.Helper()
	rep, back := jsonReport(t, r.trace, "--at", moment), jsonReport(t, again)
	at := rep.At.Devices[0]
	equal(t, moment+": framework peak", back.Framework.PeakBytes, rep.Framework.PeakBytes)
	equal(t, moment+": framework left", back.Framework.LiveBytes, at.Framework.LiveBytes)
	equal(t, moment+": driver left", back.Driver.LiveBytes, at.Driver.LiveBytes)
	if moment == "exit" {
		equal(t, "driver peak", back.Driver.PeakBytes, rep.Driver.PeakBytes)
		equal(t, "framework allocations", back.Framework.AllocCount, rep.Framework.AllocCount)
		equal(t, "driver allocations", back.Driver.AllocCount, rep.Driver.AllocCount)
	}
	for _, version := range []string{torch27, torch215} {
		folders, err := filepath.Glob(filepath.Join(venv(t, version, ""), "lib", "python3*", "site-packages"))
		if err != nil || len(folders) != 1 {
			t.Fatalf("%s: %v", version, folders)
		}
		var v struct {
			Used, Idle, Segments, Mallocs, Frees, Blocks, Deleted uint64
			Beside                                                []uint64
			Lines                                                 []string
		}
		readWith(t, filepath.Join(venv(t, version, ""), "bin", "python"), "memory_viz.py", &v, folders[0], file)
		var beside uint64
		for _, size := range v.Beside {
			beside += size
		}
		what := moment + ", " + version + ": "
		if moment != "peak" { // for which a report has no requests
			equal(t, what+"requested, and beside PyTorch", v.Used, value(at.Framework.Requested).Bytes+beside)
		}
		if moment == "exit" {
			slices.Sort(v.Beside)
			if fmt.Sprint(v.Beside) != "[1000000 1000001 1000002]" {
				t.Errorf("%smemory beside PyTorch: %d", what, v.Beside)
			}
			equal(t, what+"idle", v.Idle, at.ReservedBytes-at.Framework.LiveBytes)
			equal(t, what+"blocks that came", v.Blocks, rep.Framework.AllocCount+4)
			equal(t, what+"blocks that went", v.Deleted, rep.Framework.FreeCount+1)
		}
		if !strings.Contains(strings.Join(v.Lines, "\n"), "Runtime.malloc") {
			t.Errorf("%sno line names who asked beside PyTorch: %q", what, v.Lines)
		}
	}
}

// dhatPage opens a file in Valgrind's viewer, as its button does, and lets each metric that it can sort by show itself.
const dhatPage = `<!DOCTYPE html><html><head><meta charset="UTF-8"><script src="dh_view.js"></script></head><body><script type="application/json" id="file">%s</script><script>
onLoad();
gFilename = "t.dhat.json";
gData = JSON.parse(document.getElementById("file").textContent);
buildTree();
for (const option of gSelect.childNodes) {
  if (!option.disabled) {
    option.selected = true;
    displayTree(0, 0, 0);
  }
}
gSelect.childNodes[0].selected = true;
displayTree(0, 0, 0);
</script></body></html>`

// TestDHATOpens: Valgrind's own viewer, in a browser, shows a file's sums.
func TestDHATOpens(t *testing.T) {
	t.Parallel()
	extended(t)
	viewer := "/usr/libexec/valgrind/dh_view.js"
	script, err := os.ReadFile(viewer)
	if err != nil {
		t.Skipf("valgrind is not installed: %v", err)
	}
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed")
	}
	r := besideProgram.record(t)
	data := memtrace(t, "-q", "export", "dhat", "-o", "-", r.trace)
	folder := t.TempDir()
	page := filepath.Join(folder, "dhat.html")
	for name, text := range map[string]string{page: fmt.Sprintf(dhatPage, data),
		filepath.Join(folder, "dh_view.js"): string(script)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var stderr bytes.Buffer
	cmd := exec.Command(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir="+
		filepath.Join(folder, "profile"), "--enable-logging=stderr", "--virtual-time-budget=10000", "--dump-dom",
		"file://"+page)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || strings.Contains(stderr.String(), "CONSOLE") {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	text := regexp.MustCompile("<[^>]*>").ReplaceAllString(string(out), "")
	text = text[strings.LastIndex(text, "Invocation {"):]
	rep := jsonReport(t, r.trace)
	for label, want := range map[string][2]uint64{"Total:": {rep.Framework.AllocBytes, rep.Framework.AllocCount},
		"At t-gmax:": {rep.Framework.PeakBytes, 0},
		"At t-end:":  {rep.Framework.LiveBytes, rep.Framework.AllocCount - rep.Framework.FreeCount}} {
		found := regexp.MustCompile(label + ` +([\d,]+) bytes \([^)]*\) in ([\d,]+) blocks`).FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("the viewer shows no %q:\n%.2000s", label, text)
		}
		equal(t, label+" bytes", plainNumber(t, found[1]), want[0])
		if want[1] > 0 {
			equal(t, label+" blocks", plainNumber(t, found[2]), want[1])
		}
	}
	if !strings.Contains(text, "beside.py") || !strings.Contains(text, "PyTorch blocks") ||
		!strings.Contains(text, "avg lifetime") {
		t.Errorf("the viewer shows\n%.3000s", text)
	}
}

func plainNumber(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.ReplaceAll(text, ",", ""), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
