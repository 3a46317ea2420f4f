package oom

import (
	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
)

// throughGroupings say more of a block than the line of the program that asked for it, which may be the one that calls
// a trainer.
var throughGroupings = []string{"inner", "operator", "module"}

// lookThrough divides the live blocks of a device by what lies beneath the program's own lines, and the place that
// holds most of them, and tells what they say of the program.
func (t *Tracker) lookThrough(device int16, main heap.Account, time int64) (list []report.Ledger,
	division *report.Division, seen report.OOMSeen) {
	by, err := profile.PickGroupings(throughGroupings, nil)
	if err != nil {
		panic(err) // the names are the registry's
	}
	sums := make([]map[uint64]uint64, len(by))
	for g := range by {
		sums[g] = make(map[uint64]uint64)
	}
	uses := make(map[uint64]stackUse)
	held := make(map[profile.Origin]uint64)
	t.Heap.Each(func(id uint32, b *heap.Block) {
		if b.Device != device || b.Account != main {
			return
		}
		o := profile.OriginOf(b)
		if t.OriginOf != nil {
			o = t.OriginOf(id, b)
		}
		for g := range by {
			sums[g][by[g].ID(t.Resolver, &o)] += b.Size
		}
		held[o] += b.Size
		use := t.useOf(uses, profile.StackID(t.Resolver, &o))
		seen.Autocast = seen.Autocast || use.autocasts
		seen.Add(b.Size, o.Category, func() bool { return use.loads })
	})
	for g := range by {
		list = append(list, report.Ledger{By: by[g].Name, Level: main.String(), Moment: "oom", TimeNS: time,
			Rows: t.namedRows(by[g], sums[g])})
	}
	if t.Divide != nil {
		all := make([]profile.Held, 0, len(held))
		for o, bytes := range held {
			all = append(all, profile.Held{Origin: o, Bytes: bytes})
		}
		division = t.Divide(main.String(), all)
	}
	return list, division, seen
}

// stackUse is what a call stack tells of the program.
type stackUse struct{ autocasts, loads bool }

// useOf looks through a stack once.
func (t *Tracker) useOf(known map[uint64]stackUse, id uint64) stackUse {
	use, ok := known[id]
	if !ok {
		frames := t.Resolver.Stacks.Of(callstack.PairOf(id)).All
		use = stackUse{callstack.Autocasts(frames), callstack.LoadsCheckpoint(frames)}
		known[id] = use
	}
	return use
}

// namedRows turns what identifiers of a grouping hold into rows, most first.
func (t *Tracker) namedRows(by *profile.Grouping, sums map[uint64]uint64) []report.LedgerRow {
	keys, labels := make(map[report.OwnerKey]uint64), make(map[string]string)
	for id, bytes := range sums {
		key := by.Key(t.Resolver, id)
		keys[report.OwnerKey{Owner: report.OwnerBlocks, Key: key}] += bytes
		if by.Label != nil {
			labels[key] = by.Label(t.Resolver, id)
		}
	}
	rows := report.OwnerRows(keys)
	for i := range rows {
		rows[i].Label = labels[rows[i].Key]
	}
	return rows
}
