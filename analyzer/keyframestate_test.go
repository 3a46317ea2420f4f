package analyzer

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// TestKeptStateComesBack: what a replay knows that begins at a keyframe, before its first event, is what the keyframe
// holds: keeping it again gives the same numbers.
func TestKeptStateComesBack(t *testing.T) {
	sets := []profile.RuleGrouping{{Name: "category", Rules: madeSet(t)}}
	compared := 0
	for seed := range uint64(randomStreams() / 10) {
		rng := rand.New(rand.NewPCG(seed, 78))
		events := storyOf(seed, rng)
		file, _, err := framed(t, traceOf(t, events, rng), eachBlock)
		if errors.Is(err, ErrNoKeyframes) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		from := parseAt(t, "1ns")
		from.Time = events[len(events)-1-rng.IntN(len(events)/2)].Time
		src := openStory(t, file)
		p, err := NewProfile(src, Options{Training: true, RuleSets: sets, Ahead: openStory(t, file), Keyframes: true,
			From: from, Symbols: symbol.Options{NoFiles: true}})
		if err != nil {
			t.Fatal(err)
		}
		if b := p.replayer.begin; b != nil && b.place != nil {
			compareKept(t, seed, p, src, b)
			compared++
		}
		p.Close()
	}
	if compared == 0 {
		t.Error("no replay began at a keyframe")
	}
}

func compareKept(t *testing.T, seed uint64, p *Profile, src *trace.Reader, b *beginning) {
	t.Helper()
	want, err := b.list.Read(b.place)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.ReadBatch(); err != nil {
		t.Fatal(err)
	}
	r := p.replayer
	if err := r.enter(src); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	var order []uint32
	r.heap.Each(func(id uint32, _ *heap.Block) { order = append(order, id) })
	var got trace.Keyframe
	s := &got.State
	r.accounts.resolver.Libraries.Keep(s)
	r.accounts.links.Keep(s)
	r.accounts.resolver.Places.Keep(s)
	r.accounts.held.Keep(s)
	r.heap.Keep(order, newKeeper(r).eventOf, &got)
	r.device.Keep(s)
	r.allocator.Keep(s)
	r.parameters.Keep(s)
	r.ooms.Keep(s)
	r.accounts.iterations.Keep(s, order)
	r.keepCounts(s, order)
	for i := range want.Live {
		e := &want.Live[i]
		if e.Stream, e.Pool, e.Rest = 0, 0, 0; i >= len(got.Live) || got.Live[i] != *e {
			t.Fatalf("seed %d: live block %d of %d and %d: %+v", seed, i, len(got.Live), len(want.Live), *e)
		}
	}
	for _, name := range s.Names() {
		if got, want := numbersOf(s.Table(name)), numbersOf(want.State.Table(name)); name != "training.pass" &&
			!slices.Equal(got, want) {
			t.Errorf("seed %d: table %s has\n%v, want\n%v", seed, name, got, want)
		}
	}
}

func numbersOf(t *trace.Numbers) (list []uint64) {
	for t.More() {
		list = append(list, t.Next())
	}
	return list
}
