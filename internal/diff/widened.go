package diff

import (
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/fold"
)

// A module whose parameters grew has larger outputs, and modules without parameters that follow it, such as a dropout,
// then hold more. They are told from what grew for another reason, such as a larger batch, by two signs: what they hold
// grew in the ratio of one of its parameters, and not every module grew.

// widened is a module with parameters that grew.
type widened struct {
	module string
	ratios []float64 // of its parameters to those of the base
}

// widenedModules lists them in the order of the new run's parameters, which is the model's.
func (d *Diff) widenedModules(changed *report.Training) (list []widened) {
	ratios := make(map[string]float64)
	for i := range d.Parameters {
		if p := &d.Parameters[i]; p.Category == "parameter" && p.Bytes.Base > 0 && p.Bytes.Delta > 0 {
			ratios[p.Name] = float64(p.Bytes.New) / float64(p.Bytes.Base)
		}
	}
	for i := range changed.Parameters {
		p := &changed.Parameters[i]
		ratio, grew := ratios[p.Name]
		dot := strings.LastIndexByte(p.Name, '.')
		if p.Category != "parameter" || !grew || dot < 0 {
			continue
		}
		n := slices.IndexFunc(list, func(w widened) bool { return w.module == p.Name[:dot] })
		if n < 0 {
			n = len(list)
			list = append(list, widened{module: p.Name[:dot]})
		}
		list[n].ratios = append(list[n].ratios, ratio)
	}
	return list
}

// follow fills in Row.Since of rows by module.
func (d *Diff) follow(changed *report.Training) {
	if len(d.Parameters) == 0 || changed == nil {
		return
	}
	list := d.widenedModules(changed)
	names := foldedNames(list)
	own := make(map[string]bool, len(list))
	for _, w := range list {
		own[w.module] = true
	}
	for _, g := range d.Groups {
		if g.By != "module" || g.Level != report.LevelFramework || !slices.ContainsFunc(g.Rows, still) {
			continue
		}
		rows := g.Rows
		for i := range rows {
			r := &rows[i]
			if r.State != StateGrew || r.PeakBytes.Base == 0 || own[r.Key] || !report.NamesOwner(r.Key) {
				continue
			}
			ratio := float64(r.PeakBytes.New) / float64(r.PeakBytes.Base)
			for n, w := range list {
				if slices.ContainsFunc(w.ratios, func(of float64) bool { return near(ratio, of) }) {
					r.Since = names[n]
					break
				}
			}
		}
	}
}

// still reports whether a module holds as much as in the base.
func still(r Row) bool {
	return r.State == StateSame && r.PeakBytes.Base > 0 && report.NamesOwner(r.Key)
}

// foldedNames are the names of modules, repeated ones as one.
func foldedNames(list []widened) []string {
	names, sizes := make([]string, len(list)), make([]uint64, len(list))
	for i := range list {
		names[i] = list[i].module
	}
	for _, f := range fold.Modules(slices.Clone(names), sizes) {
		for _, member := range f.Members {
			names[member] = f.Name
		}
	}
	return names
}
