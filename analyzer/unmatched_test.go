package analyzer

import (
	"regexp"
	"strings"
	"testing"

	"memtrace/internal/heap"
	"memtrace/internal/moment"
	"memtrace/trace"
)

// TestFiltersThatMatchNothing: a report of zeros is no answer; what there is instead is told.
func TestFiltersThatMatchNothing(t *testing.T) {
	for _, test := range []struct {
		o    Options
		want string // "" matches something
	}{
		{Options{Devices: []int16{5}},
			"no memory was allocated on device 5; the trace has allocations on an unknown one, device 0, device 1"},
		{Options{Devices: []int16{1}}, ""},
		{Options{Tag: "nope"}, `nothing has the tag "nope"; there are tags "model`},
		{Options{Tag: "model"}, ""},
		{Options{Library: "libnone"}, `no library's name contains "libnone"; there are calls from "lib`},
		{Options{Library: "lib"}, ""},
		{Options{Focus: regexp.MustCompile("zzz")}, "nothing matches --focus zzz"},
		{Options{Focus: regexp.MustCompile(".")}, ""},
		{Options{Ignore: regexp.MustCompile("zzz")}, ""},
	} {
		src := &memorySource{events: randomStream(4, streamShape{events: 300}), end: &trace.End{}}
		fillTables(&src.tables)
		s, err := Summarize(src, test.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.Unmatched, "; "); test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
			t.Errorf("%v: %q, want %q", test.o.words(), got, test.want)
		}
	}
}

func TestAtAfterTheEnd(t *testing.T) {
	src := &memorySource{events: randomStream(4, streamShape{events: 300}), end: &trace.End{Time: 2e9}}
	fillTables(&src.tables)
	_, err := Summarize(src, Options{Question: Question{At: must(moment.Parse("99h"))}})
	if err == nil || !strings.Contains(err.Error(), "--at 99h is after the end of the run") {
		t.Errorf("%v", err)
	}
}

// TestAtTeardown: the state right behind the last allocation is that of a run that ended there.
func TestAtTeardown(t *testing.T) {
	for seed := range uint64(30) {
		stream := func(upTo uint64) *memorySource {
			src := &memorySource{end: &trace.End{}}
			for _, e := range randomStream(seed, streamShape{events: 400}) {
				if upTo == 0 || e.Seq <= upTo {
					src.events = append(src.events, e)
				}
			}
			fillTables(&src.tables)
			return src
		}
		last := make(map[heap.Account]uint64)
		for _, e := range stream(0).events {
			if e.Kind == trace.EventAlloc && e.Status == 0 {
				last[heap.AccountOf(&e)] = e.Seq
			}
		}
		opts := Options{Question: Question{Groupings: []string{"tag", "api"}, At: must(moment.Parse("teardown"))},
			Ahead: stream(0)}
		got, err := Summarize(stream(0), opts)
		if err != nil {
			t.Fatal(err)
		}
		account := heap.AccountDriver
		if got.MainLevel() == "framework" {
			account = heap.AccountFramework
		}
		want, err := Summarize(stream(last[account]),
			Options{Question: Question{Groupings: opts.Groupings, At: must(moment.Parse("exit"))}})
		if err != nil {
			t.Fatal(err)
		}
		if got.At.Framework.LiveBytes != want.At.Framework.LiveBytes || got.At.Driver.LiveBytes !=
			want.At.Driver.LiveBytes || asJSON(t, got.At.Groups) != asJSON(t, want.At.Groups) {
			t.Fatalf("seed %d: %+v, want %+v", seed, got.At, want.At)
		}
	}
	if _, err := Summarize(&memorySource{end: &trace.End{}},
		Options{Question: Question{At: must(moment.Parse("teardown"))},
			Ahead: &memorySource{end: &trace.End{}}}); err == nil ||
		!strings.Contains(err.Error(), "made no allocation") {
		t.Errorf("without allocations: %v", err)
	}
}
