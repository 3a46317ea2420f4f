//go:build e2e

package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

// Coroutines that waited inside of `with memtrace.tag()` at the same time had their memory booked to each other's tags,
// nested in one another, with no note.
func TestTagsOfCoroutines(t *testing.T) {
	t.Parallel()
	r := program{framework: torch27, args: []string{"trial.py", "tags"}}.record(t)
	got := map[string]uint64{}
	for _, g := range jsonReport(t, r.trace, "--by", "tag").Groups {
		if g.Level == "framework" {
			for _, row := range g.Rows {
				if row.PeakBytes >= 1<<20 { // without a tag there is the state of PyTorch's random numbers
					got[row.Key] = row.PeakBytes
				}
			}
		}
	}
	want := map[string]uint64{"req0": 32 << 20, "req1": 64 << 20, "req2": 96 << 20}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("tags hold %v, want %v", got, want)
	}
}

// Marks and steps before the first CUDA call were lost, later steps were renumbered, and the last step was not an
// iteration: its memory was assigned to none.
func TestStepsBeforeCUDA(t *testing.T) {
	t.Parallel()
	r := program{framework: torch27, args: []string{"trial.py", "early"}}.record(t)
	rep := jsonReport(t, r.trace, "--at", "mark:begin")
	training := value(rep.Training)
	if s := rep.Steps; s.Count != 5 || s.FirstNumber != 0 || s.LastNumber != 4 {
		t.Errorf("%+v", s)
	}
	list := training.Iterations
	if len(list) != 5 || training.Highest != 4 {
		t.Fatalf("%+v", training)
	}
	for i, it := range list {
		if it.Number != uint64(i) || it.Peak.Bytes != uint64(i+1)<<25 {
			t.Errorf("iteration %d is number %d with %d bytes", i, it.Number, it.Peak.Bytes)
		}
	}
}

// "What fills device 0" was the last sample: after the program had freed its memory, without owners, below a peak of
// many times as much.
func TestDeviceLedgerIsOfTheHighestSample(t *testing.T) {
	t.Parallel()
	extended(t)
	r := program{framework: torch27, args: []string{"trial.py", "settle"}}.record(t)
	text := memtrace(t, "report", "--details", r.trace)
	_, table, found := strings.Cut(text, "\nWhat fills device 0")
	table, _, _ = strings.Cut(table, "\n  in use")
	line := fmt.Sprintf("trial.py:%d settle", lineOf(t, "trial.py", "kept = ["))
	if !strings.Contains(strings.Join(strings.Fields(table), " "), "rounding and unsplit remainder of blocks 400 B") {
		t.Errorf("the table has no row of rounding:\n%s", table)
	}
	var requested uint64
	for _, row := range deviceReportOf(t, r.trace, "--by", "site").Devices[0].Ledgers[0].Rows {
		requested += value(row.Requested).Bytes
	}
	want, err := strconv.ParseUint(strings.TrimSpace(r.stdout), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "requested in the device ledger", requested, want)
	if !found || !strings.Contains(table, "highest sample") || !strings.Contains(table, line) ||
		!strings.Contains(table, "128.0 MiB") {
		t.Errorf("no %s with 128.0 MiB in:\n%s", line, text)
	}
}

// Whether a server was reported to grow depended on how long it ran: iterations were guessed, one token of one client
// each, and where none could be guessed growth was not reported. Its two leaks are reported, the larger one first, and
// a server without any has none, after some hundred requests as after some thousand.
func TestGrowthOfAsyncServer(t *testing.T) {
	t.Parallel()
	extended(t)
	leaks := []string{fmt.Sprintf("async_server.py:%d ", lineOf(t, "async_server.py", "caches[which] =")),
		fmt.Sprintf("async_server.py:%d ", lineOf(t, "async_server.py", "last[number] ="))}
	for _, requests := range []string{"400", "2400"} {
		for _, kind := range []string{"leaking", "healthy"} {
			t.Run(requests+" "+kind, func(t *testing.T) {
				t.Parallel()
				p := program{framework: torch27, args: []string{"async_server.py", requests}}
				if kind == "healthy" {
					p.args = append(p.args, "--healthy")
				}
				r := p.record(t)
				trend, text := jsonReport(t, r.trace).Trend, memtrace(t, "report", r.trace)
				if kind == "healthy" {
					if trend.Kind != "none" || strings.Contains(text, "grows") {
						t.Errorf("%+v\n%s", trend, text)
					}
					return
				}
				if trend.Kind != "steady" || len(trend.Owners) < 2 ||
					!strings.Contains(trend.Owners[0].Site, leaks[0]) ||
					!strings.Contains(trend.Owners[1].Site, leaks[1]) {
					t.Errorf("want %v: %+v", leaks, trend)
				}
				if strings.Contains(text, "per iteration") || !strings.Contains(text, "Memory grows (") {
					t.Errorf("growth is not told in all:\n%s", text)
				}
			})
		}
	}
}

// What was requested for the blocks of parameters, gradients and states of an optimizer agrees with PyTorch's snapshot,
// and the table leads from the elements to the blocks.
func TestParametersHaveRequestedBytes(t *testing.T) {
	t.Parallel()
	extended(t)
	r := program{framework: torch27, args: []string{"trial.py", "requested"}}.record(t)
	var requested, held uint64
	if _, err := fmt.Sscan(r.stdout, &requested, &held); err != nil {
		t.Fatalf("%v: %q", err, r.stdout)
	}
	var sum *report.Requested
	for _, p := range value(jsonReport(t, r.trace).Training).Parameters {
		sum = report.PlusRequested(sum, p.Requested)
	}
	got := value(sum)
	equal(t, "requested", got.Bytes, requested)
	equal(t, "blocks", got.Bytes+got.RestBytes, held)
	equal(t, "unknown", got.UnknownBytes, 0)
	text := memtrace(t, "report", "--view", "parameters", r.trace)
	for _, row := range []string{"\n  rounding and unsplit remainder ", "\n  their blocks ",
		", all of which was requested"} {
		if !strings.Contains(text, row) {
			t.Errorf("no %q in\n%s", row, text)
		}
	}
}
