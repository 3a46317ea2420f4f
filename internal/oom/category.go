package oom

import (
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/internal/rules"
	"memtrace/trace"
)

// nameCategories are the categories of blocks that the framework gave a name.
var nameCategories = [...]string{trace.CategoryParameter: "Parameters", trace.CategoryBuffer: "Parameters",
	trace.CategoryGradient:  "Gradients",
	trace.CategoryOptimizer: "Optimizer state", trace.CategoryData: "Input data"}

// phaseCategories are the categories of blocks without a name, by the part of the program that allocated them. Such a
// block is live, so that what only lasts as long as its pass is not told apart.
var phaseCategories = map[string]string{"init": "Parameters", "forward": "Feature maps",
	"recompute": "Recomputed feature maps", "backward": "Gradients",
	"optimizer": temporary, "data": "Input data"}

// namedBlocks are what a framework calls its live blocks. Inside of the program no trace can be read ahead, so that a
// name is known from when it was said.
type namedBlocks struct {
	of       []trace.Category // by block id; shorter than the ids where the last ones have no name
	elements []uint8          // of the same names: bytes of an element
	by       CategoryByPhase
}

// opened takes in a new block, which has no name.
func (n *namedBlocks) opened(id uint32) {
	if int(id) < len(n.of) {
		n.of[id] = trace.CategoryNone
	}
}

// named takes in a name of the block at an address. What several tensors share is called by the first name of the first
// category, as in reports.
func (n *namedBlocks) named(e *trace.Event, h *heap.Heap) {
	id, live := h.Framework.At(e.Addr)
	if !live || h.Seq(id) > e.Seq {
		return
	}
	switch known := heap.Slot(&n.of, int(id)); {
	case e.Category == trace.CategoryFree:
		*known = trace.CategoryNone
	case *known == trace.CategoryNone || e.Category < *known:
		*known = e.Category
		*heap.Slot(&n.elements, int(id)) = e.ElementBytes()
	}
}

func (n *namedBlocks) elementOf(id uint32) uint8 {
	if int(id) >= len(n.of) || n.of[id] == trace.CategoryNone {
		return 0
	}
	return n.elements[id]
}

func (n *namedBlocks) categoryOf(r *profile.Resolver, id uint32, b *heap.Block) string {
	name := trace.CategoryNone
	if int(id) < len(n.of) {
		name = n.of[id]
	}
	return n.by.Of(r, name, b)
}

// CategoryByPhase says what a live block is for without rules: by its name, else by the part of the program that
// allocated it. It agrees with the rules of the preset torch, which are not linked into the program.
type CategoryByPhase struct {
	byStack map[allocator]string
}

// allocator is where blocks without a name come from.
type allocator struct {
	callstack.Pair
	thread trace.ThreadID
}

// Of returns the category of a block with a name.
func (k *CategoryByPhase) Of(r *profile.Resolver, name trace.Category, b *heap.Block) string {
	if int(name) < len(nameCategories) && nameCategories[name] != "" {
		return nameCategories[name]
	}
	from := allocator{callstack.Pair{Native: b.Stack, Python: b.PyStack}, b.Thread}
	category, known := k.byStack[from]
	if !known {
		category = phaseCategory(r.PhaseOf(from.Pair, from.thread))
		if k.byStack == nil || len(k.byStack) == maxStacks {
			k.byStack = make(map[allocator]string)
		}
		k.byStack[from] = category
	}
	return category
}

// phaseCategory is the category of what the frames of a phase allocate.
func phaseCategory(phase string, frames []*rules.Frame) string {
	if phase == "optimizer" && slices.ContainsFunc(frames, func(f *rules.Frame) bool {
		return f.IsIn("_init_group")
	}) {
		return "Optimizer state"
	}
	if makesBuckets(frames) {
		return buckets
	}
	if category := phaseCategories[phase]; category != "" {
		return category
	}
	return rules.Others
}

// makesBuckets reports whether DistributedDataParallel makes what it sends gradients in: when a model is wrapped, and
// once more in a later forward pass.
func makesBuckets(frames []*rules.Frame) bool {
	innermost := true
	for _, f := range frames {
		if f.File == "" {
			continue
		}
		if strings.HasSuffix(f.File, "torch/nn/parallel/distributed.py") &&
			(f.IsIn("_ddp_init_helper") || innermost && f.IsIn("_pre_forward")) {
			return true
		}
		innermost = false
	}
	return false
}

// categoryCounts adds up the live blocks of a device by category. nil counts nothing.
type categoryCounts map[string]*report.OOMCategory

func (c categoryCounts) add(category string, bytes uint64) {
	if category == "" {
		return
	}
	row := c[category]
	if row == nil {
		row = &report.OOMCategory{Category: category}
		c[category] = row
	}
	row.Bytes += bytes
	row.BlockCount++
}

// move counts a block that was added to one category in another instead.
func (c categoryCounts) move(from, to string, bytes uint64) {
	row := c[from]
	row.Bytes, row.BlockCount = row.Bytes-bytes, row.BlockCount-1
	if row.BlockCount == 0 {
		delete(c, from)
	}
	c.add(to, bytes)
}

// rows are the categories, most first, rules.Others last; nil where nothing is known but that.
func (c categoryCounts) rows() []report.OOMCategory {
	if len(c) == 0 || len(c) == 1 && c[rules.Others] != nil {
		return nil
	}
	var list []report.OOMCategory
	for _, row := range c {
		list = append(list, *row)
	}
	slices.SortFunc(list, report.CompareOOMCategories)
	return list
}
