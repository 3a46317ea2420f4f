package render

import (
	"fmt"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// Bytes of the model that the views are tested with: a transformer of twelve layers, whose head shares nothing.
const (
	kib = 1 << 10
	mib = 1 << 20
)

var caseCategories = []string{"Parameters", "Gradients", "Optimizer state", "Feature maps", "Intermediate gradients",
	"Workspace", "Others"}

// trainingCase is a run of the given number of iterations by an optimizer, in two epochs. Each iteration leaves leak
// bytes of Others allocated.
func trainingCase(iterations int, leak uint64) *report.Summary {
	t := &report.Training{Level: "framework", Rules: "torch", Categories: caseCategories,
		Adapters:     map[string]string{"torch": "on"},
		IterationsBy: report.IterationsByOptimizer, Iterated: "steps of AdamW", Highest: iterations - 1}
	if leak == 0 {
		t.Highest = min(1, iterations-1)
	}
	for i := range iterations {
		t.Iterations = append(t.Iterations, caseIteration(i, iterations, leak))
	}
	t.Parameters = caseParameters()
	root := caseModules()
	t.Modules = &root
	held := t.Iterations[t.Highest].Peak
	return &report.Summary{Training: t, Cross: crossCase(), Timeline: timelineCase(),
		Versions: map[string]string{"torch": "2.7.1"}, Process: report.Process{Command: "python3 train.py"},
		Health: report.Health{Complete: true}, Trend: caseTrend(iterations, leak),
		Framework: report.Level{PeakBytes: held.Bytes, PeakTimeNS: held.TimeNS, AllocCount: 1},
		Driver:    report.Level{PeakBytes: 1 << 30, AllocCount: 1}}
}

// caseTrend is the judgement on such a run.
func caseTrend(iterations int, leak uint64) *report.Trend {
	t := &report.Trend{Level: "framework", Kind: report.GrowthNone, Owners: []report.TrendOwner{}}
	if leak > 0 {
		t.Kind, t.FromTimeNS, t.ToTimeNS = report.GrowthSteady, 100e6, int64(iterations)*100e6
		t.Bytes, t.BytesPerIteration = leak*uint64(iterations-1), leak
		t.BytesPerSecond = float64(leak) * 10
		t.Owners = append(t.Owners, report.TrendOwner{Site: "train.py:41 main", User: true, Bytes: t.Bytes})
	}
	return t
}

func caseIteration(i, iterations int, leak uint64) report.Iteration {
	left := leak * uint64(i)
	start := int64(i) * 100e6
	at := func(ns int64, phase string, held ...uint64) *report.IterationMoment {
		held[len(held)-1] += left
		return &report.IterationMoment{TimeNS: start + ns, Phase: phase, Bytes: layout.Sum(held), Held: held}
	}
	it := report.Iteration{Number: uint64(i + 1), Epoch: uint64(1 + 2*i/iterations), Ended: true, StartNS: start,
		EndNS: start + 100e6, AllocCount: 1000, FreeCount: 1000,
		ReservedPeakBytes: 857_000_000, ReservedEndBytes: 854_500_000,
		Highest: []uint64{120 * mib, 120 * mib, 240*mib + 96, 301_400_000, 34_499_999, 8 * mib, left + kib},
		End:     []uint64{120 * mib, 0, 240*mib + 96, 0, 0, 8 * mib, left}}
	it.Forward = at(40e6, "forward", 120*mib, 0, 240*mib+96, 180*mib, 0, 8*mib, kib)
	it.Backward = at(41e6, "backward", 120*mib, 2*mib, 240*mib+96, 178*mib, 20*mib, 8*mib, kib)
	it.Optimizer = at(90e6, "optimizer", 120*mib, 120*mib, 240*mib+96, 0, 0, 8*mib, 2*kib)
	if i == 0 { // the optimizer has no state yet
		it.Forward = at(40e6, "forward", 120*mib, 0, 0, 180*mib, 0, 8*mib, kib)
		it.Backward = at(41e6, "backward", 120*mib, 2*mib, 0, 178*mib, 20*mib, 8*mib, kib)
	}
	it.Peak = *it.Backward
	if it.Optimizer.Bytes > it.Peak.Bytes {
		it.Peak = *it.Optimizer
	}
	return it
}

func caseParameters() (list []report.Parameter) {
	add := func(name string, bytes uint64, states ...string) {
		p := report.Parameter{Name: name, Category: "parameter", Bytes: bytes, BlockBytes: (bytes + 511) / 512 * 512,
			Gradient: bytes, GradBlock: (bytes + 511) / 512 * 512}
		for _, state := range states {
			p.States = append(p.States, report.State{Name: state, Bytes: bytes, BlockBytes: p.BlockBytes})
		}
		p.States = append(p.States, report.State{Name: "step", Bytes: 4, BlockBytes: 512})
		list = append(list, p)
	}
	add("embed.weight", 77_194_752, "exp_avg", "exp_avg_sq")
	for i := range 12 {
		add(fmt.Sprintf("h.%d.attn.weight", i), 2*mib, "exp_avg", "exp_avg_sq")
		add(fmt.Sprintf("h.%d.mlp.weight", i), 4*mib, "exp_avg", "exp_avg_sq")
	}
	add("head,\"odd\"\nname", 3076, "exp_avg", "exp_avg_sq")
	list = append(list, report.Parameter{Name: "h.0.mask", Category: "buffer", Bytes: mib, BlockBytes: mib},
		report.Parameter{Name: "h.0.bias", Category: "buffer", Bytes: 100, BlockBytes: 512})
	return list
}

// module makes a node whose moments are its own bytes with those of its children.
func module(path, name string, own map[string][]uint64, children ...report.Module) report.Module {
	m := report.Module{Name: name, Path: path, Children: children}
	for _, moment := range moduleMoments {
		mine := make([]uint64, len(caseCategories))
		copy(mine, own[moment])
		subtree := addLists(nil, mine)
		for i := range children {
			_, below := momentOf(&children[i], moment)
			subtree = addLists(subtree, below)
		}
		m.Moments = append(m.Moments, report.ModuleBytes{Moment: moment, Own: mine, Subtree: subtree})
	}
	return m
}

func caseModules() report.Module {
	layer := func(i int) report.Module {
		path := fmt.Sprintf("h.%d", i)
		leaf := func(name string, parameters, maps uint64) report.Module {
			return module(path+"."+name, name, map[string][]uint64{"peak": {parameters, 0, 2 * parameters, maps},
				"forward":   {parameters, 0, 2 * parameters, maps},
				"backward":  {parameters, parameters / 2, 2 * parameters, maps / 2},
				"optimizer": {parameters, parameters, 2 * parameters}})
		}
		return module(path, fmt.Sprint(i), map[string][]uint64{"peak": {0, 0, 0, mib}, "forward": {0, 0, 0, mib}},
			leaf("mlp", 4*mib, 9*mib), leaf("attn", 2*mib, 4*mib))
	}
	var layers []report.Module
	for _, i := range []int{0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9} { // as names sort
		layers = append(layers, layer(i))
	}
	odd := layer(12)
	odd.Children[0].Moments[0].Own[3] += kib
	odd.Children[0].Moments[0].Subtree[3] += kib
	odd.Moments[0].Subtree[3] += kib
	layers = append([]report.Module{odd}, layers...)
	small := func(name string) report.Module {
		return module(name, name, map[string][]uint64{"peak": {3 * kib}, "forward": {3 * kib}, "backward": {3 * kib},
			"optimizer": {3 * kib}})
	}
	outside := module(report.NoModule, report.NoModule,
		map[string][]uint64{"peak": {0, 0, 0, 0, 20 * mib, 8 * mib, kib}, "backward": {0, 0, 0, 0, 20 * mib, 8 * mib,
			kib}, "forward": {0, 0, 0, 0, 0, 8 * mib}})
	embed := module("embed", "embed", map[string][]uint64{"peak": {77_194_752, 0, 154_389_504},
		"forward": {77_194_752, 0, 154_389_504}, "optimizer": {77_194_752, 77_194_752, 154_389_504}})
	return module("", "", nil, module("h", "h", nil, layers...), embed, outside, small("head"), small("norm"))
}

// crossCase crosses modules with categories: layers, and what has a name of its own.
func crossCase() *report.Cross {
	c := &report.Cross{By: [2]string{"module", "category"}, Level: "framework", Moment: "peak", TimeNS: 141e6,
		Columns: []report.CrossColumn{{Key: "Feature maps"}, {Key: "Parameters"}, {Key: "Optimizer state"},
			{Key: "Others"}}}
	add := func(key string, cells ...uint64) {
		row := report.CrossRow{Key: key, Cells: cells}
		for i, bytes := range cells {
			row.Bytes += bytes
			c.Columns[i].Bytes += bytes
			c.WholeBytes += bytes
		}
		c.Rows = append(c.Rows, row)
	}
	add("embed", 0, 70*mib, 140*mib, 0)
	for i := range 6 {
		add(fmt.Sprintf("h.%d.attn", i), 30*mib, 4*mib, 8*mib, 0)
		add(fmt.Sprintf("h.%d.mlp", i), uint64(20+i)*mib, 0, 0, 0)
	}
	add("(no module)", 0, 0, 0, 3*mib)
	return c
}
