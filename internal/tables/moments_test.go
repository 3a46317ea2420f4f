package tables

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/guest"
)

// TestMomentsOfTheProgram: what was held when memory ran out and at marks is in profiles, and adds up to what the
// report says of that moment.
func TestMomentsOfTheProgram(t *testing.T) {
	kinds := make(map[string]int)
	for name, raw := range guest.ReportTraces(t) {
		sums := make(map[string]map[string]int64)
		for _, r := range rowsOf[Share](t, written(t, raw)["profiles"]) {
			if sums[r.Moment] == nil {
				sums[r.Moment] = make(map[string]int64)
			}
			sums[r.Moment][r.Level] += r.Bytes
		}
		delete(sums, momentPeak)
		delete(sums, momentExit)
		for at, got := range sums {
			s, _ := replayed(t, raw, at, nil)
			if got[report.LevelFramework] != int64(s.At.Framework.LiveBytes) ||
				got[report.LevelDriver] != int64(s.At.Driver.LiveBytes) {
				t.Errorf("%s: %s has %v, the report %d and %d", name, at, got, s.At.Framework.LiveBytes,
					s.At.Driver.LiveBytes)
			}
			kind, _, _ := strings.Cut(at, ":")
			kinds[kind]++
		}
	}
	if kinds["oom"] < 2 || kinds["mark"] < 2 {
		t.Errorf("tried %v", kinds)
	}
}

// A rank whose program still ran when its trace was read counted as complete, and a query for whole ranks took its
// half run for one.
func TestCompleteOnceEnded(t *testing.T) {
	for ended, want := range map[string]bool{report.EndedClean: true, report.EndedKilled: true,
		report.EndedRunning: false, report.EndedUnknown: false} {
		s := &report.Summary{Process: report.Process{Ended: ended}, Health: report.Health{Complete: true}}
		if r := NewRank(0, "t.bin", s, nil); runOf(r).Complete != want || r.Complete() != want {
			t.Errorf("ended %s: complete %v", ended, !want)
		}
		s.Health.Complete = false
		if NewRank(0, "t.bin", s, nil).Complete() {
			t.Errorf("ended %s with records missing: complete", ended)
		}
	}
}

// TestRanks: the ranks of a file are read back, and a damaged file is refused or read, but ends nothing.
func TestRanks(t *testing.T) {
	raw := guest.ReportTraces(t)["sites.txtar trace"]
	file := written(t, raw, raw, raw)["runs"]
	if got, err := Ranks(bytes.NewReader(file), int64(len(file))); err != nil || !slices.Equal(got, []int32{0, 1, 2}) {
		t.Errorf("ranks %v, %v", got, err)
	}
	for at := 0; at < len(file); at += 5 {
		cut, changed := file[:at], slices.Clone(file)
		changed[at] ^= 0xff
		if got, err := Ranks(bytes.NewReader(cut), int64(at)); err == nil {
			t.Errorf("cut at %d: ranks %v", at, got)
		}
		_, _ = Ranks(bytes.NewReader(changed), int64(len(changed)))
	}
}
