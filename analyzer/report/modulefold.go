package report

import "memtrace/analyzer/fold"

// RepeatedModules are the rows of blocks of a ledger by module, repeated modules put together, most bytes first. They add up to the blocks.
func (l *Ledger) RepeatedModules() []RepeatedModule {
	var names []string
	var bytes []uint64
	for i := range l.Rows {
		if r := &l.Rows[i]; r.Owner == OwnerBlocks {
			names, bytes = append(names, r.Key), append(bytes, r.Bytes)
		}
	}
	var list []RepeatedModule
	for _, f := range fold.Modules(names, bytes) {
		list = append(list, RepeatedModule{Title: f.Name, Count: len(f.Members), Bytes: f.Bytes, Smallest: f.Min, Largest: f.Max, Same: f.Min == f.Max, Known: f.Name != NoModule})
	}
	return list
}

// RepeatedModule is one module, or several that FoldModules takes as one.
type RepeatedModule struct {
	Title    string // "model.layers.{0..7}.mlp" for several
	Count    int
	Bytes    uint64 // of all together
	Smallest uint64 // of one
	Largest  uint64
	Same     bool // each holds as much as the others
	Known    bool // not NoModule
}
