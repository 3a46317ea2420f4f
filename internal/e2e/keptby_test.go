//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// keptBy is the report's answer to what keeps tensors alive.
type keptBy struct {
	Occasion string `json:"occasion"`
	Skipped  string `json:"skipped"`
	Holders  []struct {
		holder
		Garbage bool   `json:"garbage"`
		Frees   uint64 `json:"frees_bytes"`
		About   bool   `json:"frees_about"`
	} `json:"holders"`
}

func readKeptBy(t *testing.T, r *result) keptBy {
	t.Helper()
	var report struct {
		KeptBy keptBy `json:"kept_by"`
	}
	if err := json.Unmarshal([]byte(memtrace(t, "report", "--json", r.trace)), &report); err != nil {
		t.Fatal(err)
	}
	return report.KeptBy
}

// patience is a bound that a busy machine keeps: what is tested here is what is found.
const patience = "MEMTRACE_REFERRERS=60000"

// What keeps most of the memory is named when it runs out, in the report of the trace alone and in the text beside it,
// and what is reported to be freed with it is freed, according to the program's own counters.
func TestKeptBy(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		for mode, path := range map[string]string{
			"outputs": "in run (kept.py:35), variable self.validation_outputs[*]['feats']",
			"total":   "in total (kept.py:42), variable losses",
			"views":   "__main__.features[*]",
			"garbage": "?Result.values",
			"caught":  "__main__.errors[*] (traceback) in attempt (kept.py:75), variable held",
		} {
			t.Run(framework+" "+mode, func(t *testing.T) {
				t.Parallel()
				rarely(t, framework == torch215 && mode != "outputs")
				r := program{framework: framework, args: []string{"kept.py", mode},
					env: []string{patience, "NULLCUDA_MEM=600M"}}.record(t)
				var said struct{ Before, Freed uint64 }
				if err := json.Unmarshal([]byte(r.stdout), &said); err != nil {
					t.Fatalf("%v\n%s%s", err, r.stdout, r.stderr)
				}
				k := readKeptBy(t, r)
				if k.Occasion != "oom" || len(k.Holders) == 0 || k.Holders[0].Path != path ||
					k.Holders[0].Garbage != (mode == "garbage") {
					t.Fatalf("%+v, want %s first", k, path)
				}
				first := k.Holders[0]
				// the last pass was under way, and what it holds is freed with it; 0 where nothing else is
				if first.Frees > said.Freed || first.Frees < said.Freed*8/10 {
					t.Errorf("%d bytes are freed with %s, the program freed %d", first.Frees, path, said.Freed)
				}
				if graph := mode == "outputs" || mode == "total"; first.About != (graph && framework == torch27) ||
					graph != (first.GraphNodes > 0) {
					t.Errorf("%+v", first)
				}
				text := memtrace(t, "report", r.trace)
				if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.TrimPrefix(path, "?")) {
					t.Errorf("the first screen does not name %s:\n%s", path, text)
				}
				beside, err := os.ReadFile(filepath.Join(r.dir, "t.bin.oom.1.txt"))
				if err != nil || !strings.Contains(string(beside), "What keeps tensors alive") ||
					!strings.Contains(string(beside), strings.TrimPrefix(path, "?")) {
					t.Errorf("%v\n%s", err, beside)
				}
			})
		}
	}
}

// A program whose interpreter another thread keeps is waited for only until the timeout, and the report holds why there
// is no result; where the search is switched off, there is none.
func TestKeptBySkipped(t *testing.T) {
	t.Parallel()
	for setting, skipped := range map[string]bool{"MEMTRACE_REFERRERS=50": true, "MEMTRACE_REFERRERS=0": false} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			r := program{framework: torch27, args: []string{"kept.py", "deaf"}, env: []string{setting}}.record(t)
			if k := readKeptBy(t, r); (k.Skipped != "") != skipped || k.Holders != nil {
				t.Errorf("%+v", k)
			}
		})
	}
}

// Without running out, a program is searched before its end if its memory grew, and only then.
func TestKeptByAtTheEnd(t *testing.T) {
	t.Parallel()
	for mode, occasion := range map[string]string{"grow": "end", "steady": ""} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := program{framework: torch27, args: []string{"kept.py", mode}, env: []string{patience}}.record(t)
			k := readKeptBy(t, r)
			if k.Occasion != occasion || k.Skipped != "" {
				t.Fatalf("%+v", k)
			}
			if occasion == "" {
				return
			}
			if len(k.Holders) == 0 || k.Holders[0].Path != "__main__.features[*]" || k.Holders[0].Frees != 40*4<<20 {
				t.Errorf("%+v", k)
			}
		})
	}
}
