//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"memtrace/internal/render"
)

// allocatorMoment mirrors testdata/train/allocator_calls.py: bytes of blocks and what was requested of them, by stream
// and by pool, and bytes that wait for other streams.
type allocatorMoment struct {
	Name                 string
	Streams, Pools       map[string][2]uint64
	Pending              uint64
	Allocated, Requested uint64
}

// allocatorOracle is the program's output.
type allocatorOracle struct {
	Moments []allocatorMoment
	Given   uint64
	Free    [][2]uint64
}

func readMoments(t *testing.T, path string) (o allocatorOracle) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func allocatorAt(t *testing.T, trace, moment string) render.Document {
	t.Helper()
	rep := jsonReport(t, trace, "--at", moment, "--by", "stream,pool")
	if rep.Allocator == nil {
		t.Fatal("the report says nothing of an allocator")
	}
	return rep
}

// TestAllocatorCalls: at every mark the bytes of each stream and of each private pool, what was requested of them, and
// what waits for other streams are those of PyTorch's own snapshot; and the allocator's settings are in the report.
func TestAllocatorCalls(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		t.Run(framework, func(t *testing.T) {
			t.Parallel()
			r := program{framework: framework,
				args: []string{"allocator_calls.py", "moments.json"}}.record(t)
			want := readMoments(t, filepath.Join(r.dir, "moments.json"))
			waited := false
			for _, m := range want.Moments {
				got := allocatorAt(t, r.trace, "mark:"+m.Name)
				compareAllocatorMoment(t, &got, &m)
				waited = waited || m.Pending > 0
			}
			if !waited {
				t.Error("no block ever waited")
			}
			compareAllocatorTold(t, r.trace, want.Given, want.Free)
		})
	}
}

// TestAllocatorLate: what PyTorch held when a program called memtrace.start() has its stream and its pool, and what
// comes then, too.
func TestAllocatorLate(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, framework := range []string{torch27, torch215} {
		t.Run(framework, func(t *testing.T) {
			t.Parallel()
			r := program{framework: framework, late: true,
				args: []string{"allocator_calls.py", "moments.json", "late"}}.record(t)
			want := readMoments(t, filepath.Join(r.dir, "moments.json"))
			if len(want.Moments) != 2 || want.Moments[1].Pending == 0 {
				t.Fatalf("%+v", want.Moments)
			}
			for _, m := range want.Moments {
				got := allocatorAt(t, r.trace, "mark:"+m.Name)
				compareAllocatorMoment(t, &got, &m)
			}
		})
	}
}

// TestAllocatorOfOldPyTorch: what a version does not let be known is named.
func TestAllocatorOfOldPyTorch(t *testing.T) {
	t.Parallel()
	r := program{framework: torch113, args: []string{"neumf.py", "--steps", "1"}}.record(t)
	info := memtrace(t, "info", r.trace)
	for _, want := range []string{"adapter.torch.streams    on", "adapter.torch.pools      off: ",
		"adapter.torch.waits      off: ", "adapter.torch.settings   off: ", "adapter.torch.requested  off: "} {
		if !strings.Contains(info, want) {
			t.Errorf("no %q in\n%s", want, info)
		}
	}
	if lacks := allocatorAt(t, r.trace, "exit").Allocator.NotRecorded; len(lacks) != 4 {
		t.Errorf("not recorded: %q", lacks)
	}
}

func compareAllocatorMoment(t *testing.T, got *render.Document, want *allocatorMoment) {
	t.Helper()
	equal(t, want.Name+": allocated", got.At.Framework.LiveBytes, want.Allocated)
	equal(t, want.Name+": waiting", got.Ledgers[0].Waiting, want.Pending)
	if want.Pending == 0 { // PyTorch takes a block's request away only when it can be used again
		equal(t, want.Name+": requested", value(got.At.Framework.Requested).Bytes, want.Requested)
		equal(t, want.Name+": requested in the ledger", value(got.Ledgers[0].Requested).Bytes, want.Requested)
	}
	var whole uint64
	for _, row := range got.Ledgers[0].Rows {
		whole += row.Bytes
	}
	equal(t, want.Name+": sum of the ledger", whole, got.Ledgers[0].WholeBytes)
	for _, g := range got.At.Groups {
		if g.Level != "framework" {
			continue
		}
		oracle := map[string]map[string][2]uint64{"stream": want.Streams, "pool": want.Pools}[g.By]
		if len(oracle) != len(g.Rows) {
			t.Errorf("%s: %d rows by %s, PyTorch has %d", want.Name, len(g.Rows), g.By, len(oracle))
		}
		for _, row := range g.Rows {
			o, requested := oracle[placeName(t, g.By, row.Key, row.Label)], value(row.Requested)
			equal(t, fmt.Sprintf("%s: %s", want.Name, row.Key), row.LiveBytes, o[0])
			equal(t, fmt.Sprintf("%s: requested of %s", want.Name, row.Key), requested.Bytes, o[1])
			equal(t, fmt.Sprintf("%s: parts of %s", want.Name, row.Key), requested.Bytes+requested.RestBytes,
				row.LiveBytes)
		}
	}
}

// placeName turns a row's name into PyTorch's.
func placeName(t *testing.T, by, key, label string) string {
	t.Helper()
	switch {
	case key == "common pool":
		return "(0, 0)"
	case key == "default stream":
		return "0"
	case by == "pool":
		name, _, _ := strings.Cut(strings.TrimPrefix(key, "private pool "), "), ")
		return strings.TrimSuffix(name, ")") + ")"
	}
	_, handle, _ := strings.Cut(label, "(0x")
	n, err := strconv.ParseUint(strings.TrimSuffix(handle, ")"), 16, 64)
	if err != nil {
		t.Fatalf("%s: %v", label, err)
	}
	return strconv.FormatUint(n, 10)
}

func compareAllocatorTold(t *testing.T, trace string, given uint64, free [][2]uint64) {
	t.Helper()
	a := allocatorAt(t, trace, "exit").Allocator
	if len(a.Settings) == 0 || a.Settings[0].Text != "roundup_power2_divisions:8" {
		t.Errorf("settings: %+v", a.Settings)
	}
	if len(a.Fractions) != 2 || a.Fractions[0].Fraction != 0.75 || a.Fractions[1].Fraction != 0.5 ||
		a.Fractions[1].Device != 0 {
		t.Errorf("fractions: %+v", a.Fractions)
	}
	equal(t, "given back by the first emptyCache", a.EmptyCache.LargestBytes, given)
	if a.EmptyCache.Count < 2 || !strings.Contains(a.EmptyCache.Place, "allocator_calls.py") {
		t.Errorf("emptyCache: %+v", a.EmptyCache)
	}
	asked := false
	for _, q := range a.Asked {
		if strings.Contains(q.Place, "allocator_calls.py") && q.Count == uint64(len(free)) {
			asked = true
			equal(t, "free, as told", q.FirstFree, free[0][0])
			equal(t, "of the device", q.Total, free[0][1])
		}
	}
	if !asked {
		t.Errorf("nobody asked three times: %+v", a.Asked)
	}
	if a.Waiting.Blocks == 0 || a.Waiting.Peak == 0 || len(a.NotRecorded) > 0 {
		t.Errorf("waiting %+v, not recorded %q", a.Waiting, a.NotRecorded)
	}
}
