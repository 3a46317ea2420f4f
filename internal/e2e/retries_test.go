//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

// oomFile is the JSON file beside the trace.
type oomFile struct {
	Schema  string
	Events  []report.OOMReport
	Retries []report.OOMRetries
}

// A program that caught the exception and retried with a smaller batch was reported as out of memory three times; the
// success of the fourth attempt was not reported, nor that what the attempts had held was temporary.
func TestOOMRetries(t *testing.T) {
	t.Parallel()
	extended(t)
	r := program{framework: torch27, args: []string{"retries.py", "account.json"},
		env: []string{"NULLCUDA_MEM=1G"}}.withPackages(t).record(t)
	var account struct {
		Failures []struct {
			Bytes      uint64 `json:"bytes"`
			Blocks     uint64 `json:"blocks"`
			Parameters uint64 `json:"parameters"`
			Counted    uint64 `json:"parameter_blocks"`
		} `json:"failures"`
		Tried []int `json:"tried"`
	}
	readJSON(t, filepath.Join(r.dir, "account.json"), &account)
	if len(account.Failures) < 2 || len(account.Tried) != len(account.Failures)+1 {
		t.Fatalf("the program's account: %+v", account)
	}
	var file oomFile
	readJSON(t, r.trace+".oom.1.json", &file)
	rep := jsonReport(t, r.trace)
	training := value(rep.Training)
	if len(file.Events) != len(account.Failures) || len(rep.OOM.Events) != len(account.Failures) {
		t.Fatalf("%d and %d events, want %d", len(file.Events), len(rep.OOM.Events), len(account.Failures))
	}
	for i, want := range account.Failures {
		for from, list := range map[string][]report.OOMCategory{"file": file.Events[i].Event.Categories,
			"report": rep.OOM.Events[i].Categories} {
			where := fmt.Sprintf("%s, failure %d, ", from, i)
			held := map[string]uint64{}
			var bytes, blocks uint64
			for _, c := range list {
				held[c.Category] = c.Bytes
				bytes, blocks = bytes+c.Bytes, blocks+c.BlockCount
				if c.Category == "Parameters" {
					equal(t, where+"blocks of parameters", c.BlockCount, want.Counted)
				}
			}
			equal(t, where+"bytes", bytes, want.Bytes)
			equal(t, where+"blocks", blocks, want.Blocks)
			equal(t, where+"parameters", held["Parameters"], want.Parameters)
			if held["Feature maps"] < want.Bytes/2 || held["Temporary"] != 0 {
				t.Errorf("%s%v", where, held)
			}
		}
		for c, name := range training.Categories {
			for _, row := range rep.OOM.Events[i].Categories {
				if row.Category == name {
					equal(t, name, row.Bytes, training.OutOfMemory[i].Held[c])
				}
			}
		}
	}
	for from, list := range map[string][]report.OOMRetries{"file": file.Retries, "report": rep.OOM.Retries} {
		if len(list) != 1 || list[0].FailedCount != uint64(len(account.Failures)) ||
			list[0].StepTimeNS <= list[0].LastTimeNS {
			t.Errorf("%s: %+v", from, list)
		}
	}
	succeeded := fmt.Sprintf("ttempt %d succeeded", len(account.Tried))
	for from, text := range map[string]string{"text": sidecars(t, r.trace)["t.bin.oom.1.txt"],
		"report": memtrace(t, "report", r.trace), "details": memtrace(t, "report", "--details", r.trace)} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), succeeded) {
			t.Errorf("the %s does not say %q:\n%s", from, succeeded, text)
		}
	}
}

func readJSON(t *testing.T, path string, to any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", path, err, text)
	}
}
