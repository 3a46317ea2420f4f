package analyzer

import (
	"math/rand/v2"
	"slices"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/trace"
)

// randomStory has blocks of one level that come and go at random, from several places and under two tags.
func randomStory(seed uint64, events int) *story {
	random := rand.New(rand.NewPCG(seed, 11))
	s := &story{}
	live := map[uint64]bool{}
	stacks := []trace.StackID{stackAllocator, stackBLAS, stackProgram, stackNowhere}
	for range events {
		addr := uint64(1 + random.IntN(80))
		kind, size := trace.EventAlloc, uint64(1+random.IntN(1000))
		if live[addr] {
			kind, size = trace.EventFree, 0
		}
		live[addr] = !live[addr]
		s.add(trace.Event{Kind: kind, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Addr: addr, Size: size,
			Stack: stacks[random.IntN(len(stacks))], Tag: trace.StringID(random.IntN(3))})
	}
	return s
}

// heldAt sums up what is live behind an event, in all and by one of the keys.
func heldAt(h *report.History, event int, key int) (sum uint64, by map[string]uint64) {
	by = map[string]uint64{}
	for _, b := range h.Blocks {
		if int(b.Born) <= event && event < int(b.Died) {
			sum += b.Size
			by[h.Owners[b.Owner].Keys[key]] += b.Size
		}
	}
	return sum, by
}

// The blocks add up to the report's: the peak is the highest sum, and divided by tag and by place it is the table of
// that.
func TestHistoryAddsUp(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		s := randomStory(seed, 700).summary(t, Options{Question: Question{Groupings: []string{"tag", "site"}},
			HistoryBlocks: 10000})
		h := s.History
		if h.Level != "framework" || h.LeftOut != 0 || len(h.Times) != 700 {
			t.Fatalf("%s, %d left out, %d events", h.Level, h.LeftOut, len(h.Times))
		}
		for _, name := range []string{"tag", "site"} {
			key := 0
			for h.By[key] != name {
				key++
			}
			var peak uint64
			var at int
			for event := range h.Times {
				if sum, _ := heldAt(h, event, key); sum > peak {
					peak, at = sum, event
				}
			}
			if peak != s.Framework.PeakBytes || h.Times[at] != s.Framework.PeakTimeNS {
				t.Fatalf("seed %d: the peak is %d at %d, want %d at %d", seed, peak, h.Times[at], s.Framework.PeakBytes,
					s.Framework.PeakTimeNS)
			}
			_, by := heldAt(h, at, key)
			for _, row := range s.Group(name, "framework").Rows {
				if by[row.Key] != row.PeakBytes {
					t.Errorf("seed %d, %s %s: %d, want %d", seed, name, row.Key, by[row.Key], row.PeakBytes)
				}
			}
			if end, _ := heldAt(h, len(h.Times)-1, key); end != s.Framework.LiveBytes {
				t.Errorf("seed %d: %d at the end, want %d", seed, end, s.Framework.LiveBytes)
			}
		}
	}
}

// Of more blocks than fit, those that hold most for longest stay, and what is missing never exceeds what is said to be.
func TestHistoryLeavesOut(t *testing.T) {
	t.Parallel()
	story := randomStory(1, 4000)
	whole := story.summary(t, Options{HistoryBlocks: 10000}).History
	part := story.summary(t, Options{HistoryBlocks: 100}).History
	if part.LeftOut == 0 || len(part.Blocks)+int(part.LeftOut) != len(whole.Blocks) || len(part.Blocks) != 100 {
		t.Fatalf("%d blocks and %d left out of %d", len(part.Blocks), part.LeftOut, len(whole.Blocks))
	}
	var kept, all uint64
	for _, b := range part.Blocks {
		kept += b.Size
	}
	for _, b := range whole.Blocks {
		all += b.Size
	}
	if kept+part.LeftOutBytes != all {
		t.Errorf("%d kept and %d left out of %d bytes", kept, part.LeftOutBytes, all)
	}
}

// Without a block there is no history to draw, and none is made unless it is asked for.
func TestHistoryOfNothing(t *testing.T) {
	t.Parallel()
	if h := (&story{}).summary(t, Options{HistoryBlocks: 5}).History; h == nil || len(h.Blocks) != 0 {
		t.Errorf("%+v", h)
	}
	if h := randomStory(1, 10).summary(t, Options{}).History; h != nil {
		t.Errorf("%+v", h)
	}
}

// The heaviest blocks are the ones that a sort puts first, whatever the order and however many weigh the same.
func TestSelectHeaviest(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		blocks := make([]pastBlock, 1+random.IntN(500))
		for i := range blocks {
			blocks[i] = pastBlock{born: uint64(i), died: uint64(i) + 1 + uint64(random.IntN(4)),
				size: uint64(random.IntN(1 + int(seed)))}
		}
		want := slices.Clone(blocks)
		slices.SortFunc(want, func(a, b pastBlock) int { return heavier(&a, &b) })
		random.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
		n := random.IntN(len(blocks) + 1)
		selectHeaviest(blocks, n)
		slices.SortFunc(blocks[:n], func(a, b pastBlock) int { return heavier(&a, &b) })
		if !slices.Equal(blocks[:n], want[:n]) {
			t.Fatalf("seed %d: %d of %d are not the heaviest", seed, n, len(blocks))
		}
	}
}
