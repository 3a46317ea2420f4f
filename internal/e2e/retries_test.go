//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// oomAttempts is what the tests read of out-of-memory events and of what came after them, in a report and in the JSON
// file beside the trace.
type oomAttempts struct {
	Events []struct {
		Event oomCategories `json:"event"` // of the file
		oomCategories
	} `json:"events"`
	Retries []struct {
		Failed uint64 `json:"failed_count"`
		Last   int64  `json:"last_time_ns"`
		Step   int64  `json:"step_time_ns"`
	} `json:"retries"`
}

type oomCategories struct {
	Categories []struct {
		Category string `json:"category"`
		Bytes    uint64 `json:"bytes"`
		Blocks   uint64 `json:"block_count"`
	} `json:"categories"`
}

// A program that caught the exception and tried again with a smaller batch was told that it ran out of memory three
// times; that the fourth attempt succeeded stood nowhere, and what the attempts had held was temporary.
func TestOOMRetries(t *testing.T) {
	t.Parallel()
	extended(t)
	p := program{framework: torch27, args: []string{"retries.py", "account.json"}}
	p.env = []string{"PYTHONPATH=" + p.packageFolder(t, "packages.txt"), "HF_HUB_OFFLINE=1", "NULLCUDA_MEM=1G"}
	r := p.record(t)
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
	var file oomAttempts
	readJSON(t, r.trace+".oom.1.json", &file)
	var report struct {
		OOM      oomAttempts `json:"oom"`
		Training struct {
			Categories  []string `json:"categories"`
			OutOfMemory []struct {
				Held []uint64 `json:"held"`
			} `json:"out_of_memory"`
		} `json:"training"`
	}
	if err := json.Unmarshal([]byte(memtrace(t, "report", "--json", r.trace)), &report); err != nil {
		t.Fatal(err)
	}
	if len(file.Events) != len(account.Failures) || len(report.OOM.Events) != len(account.Failures) {
		t.Fatalf("%d and %d events, want %d", len(file.Events), len(report.OOM.Events), len(account.Failures))
	}
	for i, want := range account.Failures {
		for from, list := range map[string]oomCategories{"file": file.Events[i].Event,
			"report": report.OOM.Events[i].oomCategories} {
			where := fmt.Sprintf("%s, failure %d, ", from, i)
			held := map[string]uint64{}
			var bytes, blocks uint64
			for _, c := range list.Categories {
				held[c.Category] = c.Bytes
				bytes, blocks = bytes+c.Bytes, blocks+c.Blocks
				if c.Category == "Parameters" {
					equal(t, where+"blocks of parameters", c.Blocks, want.Counted)
				}
			}
			equal(t, where+"bytes", bytes, want.Bytes)
			equal(t, where+"blocks", blocks, want.Blocks)
			equal(t, where+"parameters", held["Parameters"], want.Parameters)
			if held["Feature maps"] < want.Bytes/2 || held["Temporary"] != 0 {
				t.Errorf("%s%v", where, held)
			}
		}
		for c, name := range report.Training.Categories {
			for _, row := range report.OOM.Events[i].Categories {
				if row.Category == name {
					equal(t, name, row.Bytes, report.Training.OutOfMemory[i].Held[c])
				}
			}
		}
	}
	for from, list := range map[string]oomAttempts{"file": file, "report": report.OOM} {
		if len(list.Retries) != 1 || list.Retries[0].Failed != uint64(len(account.Failures)) ||
			list.Retries[0].Step <= list.Retries[0].Last {
			t.Errorf("%s: %+v", from, list.Retries)
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
