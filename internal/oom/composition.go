package oom

import (
	"cmp"
	"math"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// fixed are the categories of what outlives an iteration by its nature.
var fixed = map[string]bool{parameters: true, gradients: true, optimizerState: true, "Workspace": true,
	"Library": true, copies: true, buckets: true}

const (
	featureMaps    = "Feature maps"
	parameters     = "Parameters"
	gradients      = "Gradients"
	optimizerState = "Optimizer state"
	ofActivations  = "Intermediate gradients"
	copies         = "Autocast weight copies"
	buckets        = "Communication buckets"
	temporary      = "Temporary"
)

// recurrence is what the live blocks of one call stack are.
type recurrence struct {
	count, bytes uint64
	first, last  uint64 // order numbers
	inModule     bool   // a module runs in the stack
}

// composer divides the live blocks of a device by how long they are meant to stay.
type composer struct {
	*Tracker
	device     int16
	categories categoryCounts
	byStack    map[callstack.Pair]*recurrence // of the running iteration, what is not fixed
	older      map[callstack.Pair]*recurrence
	halves     map[uint64]int // how many parameters have these sizes in half precision
	casts      map[callstack.Pair]bool
	cast       map[uint32]bool // blocks that are such copies
	multi      map[callstack.Pair]string
	features   uint64 // order number of the running iteration's first activation
	made       uint64 // of the last block before it that is fixed: inputs come after the model
	maybe      uint64 // of the iteration's activations, what has the size of such a copy
	begin, was uint64 // order numbers: where the running iteration begins, and where the first one did
	v          report.OOMComposition
}

// compose looks through the live blocks of a device's framework; nil where it is not known what they are for. final: it
// gave up.
func (t *Tracker) compose(device int16, final bool) (*report.OOMComposition, []report.OOMCategory) {
	c := &composer{Tracker: t, device: device, categories: make(categoryCounts),
		byStack: make(map[callstack.Pair]*recurrence), older: make(map[callstack.Pair]*recurrence),
		begin: t.stepped.last, was: t.stepped.first, features: math.MaxUint64}
	c.halves, c.casts = make(map[uint64]int), make(map[callstack.Pair]bool)
	c.multi = make(map[callstack.Pair]string)
	c.each(func(_ uint32, b *heap.Block, category string) { c.halve(b, category) })
	c.findCopies()
	c.each(c.count)
	if c.categories.rows() == nil {
		return nil, nil
	}
	c.v.Stepped = c.was > 0
	c.findPasses()
	passing := c.gradientsOfActivations()
	c.each(func(id uint32, b *heap.Block, category string) {
		if passing[id] {
			c.categories.move(category, ofActivations, b.Size)
			category = ofActivations
			if final {
				c.Replay.Passing(id)
			}
		}
		c.divide(b, category)
	})
	c.tellOlder()
	c.v.RepeatedBytes = c.repeated()
	if c.Ended != nil && 2*c.maybe > c.v.IterationFeatureBytes {
		// inside of the program functions of libraries have no names: they may be copies of weights
		c.v.IterationFeatureBytes, c.v.IterationBatchBytes = 0, 0
	}
	return &c.v, c.categories.rows()
}

func (c *composer) each(visit func(id uint32, b *heap.Block, category string)) {
	c.Heap.Each(func(id uint32, b *heap.Block) {
		if b.Device == c.device && b.Account == heap.AccountFramework {
			category := c.Replay.CategoryOf(id, b)
			if category == featureMaps && c.cast[id] {
				category = copies
			}
			visit(id, b, category)
		}
	})
}

// halve takes in how large the copy of a parameter is that torch.autocast makes, and where activations begin.
func (c *composer) halve(b *heap.Block, category string) {
	if category == featureMaps && b.Seq > c.begin {
		c.features = min(c.features, b.Seq)
	}
	if category == parameters {
		const unit = 512
		c.halves[(b.Size/2+unit-1)/unit*unit]++
		c.v.LargestParameterBytes = max(c.v.LargestParameterBytes, b.Size)
	}
}

// findCopies finds the copies of weights in half precision, which torch.autocast keeps until its block ends. What a
// layer reads is cast by the same function, so that the size decides, and of a size there are as many as weights.
func (c *composer) findCopies() {
	type cast struct {
		id  uint32
		seq uint64
	}
	bySize := make(map[uint64][]cast)
	c.each(func(id uint32, b *heap.Block, category string) {
		if category == featureMaps && c.halves[b.Size] > 0 && c.isCast(b) {
			bySize[b.Size] = append(bySize[b.Size], cast{id, b.Seq})
		}
	})
	c.cast = make(map[uint32]bool)
	for size, list := range bySize {
		slices.SortFunc(list, func(a, b cast) int { return cmp.Compare(a.seq, b.seq) })
		for _, copied := range list[:min(len(list), c.halves[size])] {
			c.cast[copied.id] = true
		}
	}
}

// isCast reports whether torch.autocast made a block.
func (c *composer) isCast(b *heap.Block) bool {
	pair := callstack.Pair{Native: b.Stack, Python: b.PyStack}
	casts, known := c.casts[pair]
	if !known {
		casts = slices.ContainsFunc(c.Resolver.Stacks.Of(pair).All, func(f *callstack.Frame) bool {
			return f.Function == "at::autocast::cached_cast"
		})
		c.casts[pair] = casts
	}
	return casts
}

func (c *composer) count(id uint32, b *heap.Block, category string) {
	c.categories.add(category, b.Size)
	c.narrow(id, b, category)
	if of := c.multiTensor(b, category); of != "" {
		c.v.MultiTensorBytes, c.v.MultiTensorOf = c.v.MultiTensorBytes+b.Size, of
	}
	if fixed[category] && b.Seq < c.features {
		c.made = max(c.made, b.Seq)
	}
	if b.Seq > c.begin && !fixed[category] && b.PyStack != 0 && b.PyStack&callstack.LinkedBit == 0 && category != "" {
		c.recur(c.byStack, b)
	}
}

// multiTensor names the optimizer whose multi-tensor step made a temporary block; "" for other blocks. SGD's makes its
// state as well.
func (c *composer) multiTensor(b *heap.Block, category string) string {
	if category != temporary {
		return ""
	}
	pair := callstack.Pair{Native: b.Stack, Python: b.PyStack}
	of, known := c.multi[pair]
	if !known {
		if of = callstack.MultiTensor(c.Resolver.Stacks.Of(pair).All); of == "sgd" {
			of = ""
		}
		c.multi[pair] = of
	}
	return of
}

// narrow takes in how many bytes the elements of parameters and of states of optimizers have.
func (c *composer) narrow(id uint32, b *heap.Block, category string) {
	of := &c.v.Parameters
	switch category {
	case parameters:
	case optimizerState:
		of = &c.v.OptimizerState
	default:
		return
	}
	switch c.Replay.ElementOf(id, b) {
	case 0:
		of.UnknownBytes += b.Size
	case 1:
		of.OneByte += b.Size
	case 2:
		of.TwoBytes += b.Size
	default:
		of.WideBytes += b.Size
	}
}

func (c *composer) recur(in map[callstack.Pair]*recurrence, b *heap.Block) {
	at := callstack.Pair{Native: b.Stack, Python: b.PyStack}
	r := in[at]
	if r == nil {
		if len(in) == maxStacks {
			return
		}
		r = &recurrence{first: b.Seq, inModule: c.runsModule(b.PyStack)}
		in[at] = r
	}
	r.count, r.bytes = r.count+1, r.bytes+b.Size
	r.first, r.last = min(r.first, b.Seq), max(r.last, b.Seq)
}

// repeated is what code that ran again and again in the running iteration made beyond its first run.
func (c *composer) repeated() (bytes uint64) {
	for _, r := range c.byStack {
		if r.count > leastRuns && r.first > c.begin {
			bytes += r.bytes - r.bytes/r.count
		}
	}
	return bytes
}

// leastRuns is how often code must run at least for it to count as repeated; blocks of two buffers are usual.
const leastRuns = 2

func (c *composer) divide(b *heap.Block, category string) {
	left := c.left(b, category)
	if left {
		c.v.LeftBytes += b.Size
	}
	switch feature := category == featureMaps; {
	case fixed[category], b.Seq <= c.was && b.Seq <= c.begin && !feature:
		c.v.FixedBytes += b.Size
	case b.Seq > c.begin:
		c.v.IterationBytes += b.Size
		if left {
			c.v.LeftIterationBytes += b.Size
		}
		if !left && c.multiTensor(b, category) == "" {
			c.ofBatch(b, feature)
		}
	default:
		c.v.OlderBytes += b.Size
		c.recur(c.older, b)
	}
}

// ofBatch takes in a block of the running iteration, and of the running attempt.
func (c *composer) ofBatch(b *heap.Block, feature bool) {
	if b.Seq > c.made {
		c.v.IterationBatchBytes += b.Size
	}
	if feature {
		c.v.IterationFeatureBytes += b.Size
		if r := c.byStack[callstack.Pair{Native: b.Stack, Python: b.PyStack}]; r != nil && !r.inModule {
			c.v.LooseFeatureBytes += b.Size
		}
		if c.Replay.IsNewCode(b) {
			c.v.NewCodeBytes += b.Size
		}
		if c.halves[b.Size] > 0 {
			c.maybe += b.Size
		}
	}
}

// left reports whether an attempt that failed before made a block. What the first attempt made is told from what was
// there before it by the module that ran, or because a later attempt asked at the same place.
func (c *composer) left(b *heap.Block, category string) bool {
	failed := &c.retrying
	if !failed.waiting || b.Seq > failed.last || b.Seq <= c.stepped.last || fixed[category] {
		return false
	}
	again := c.byStack[callstack.Pair{Native: b.Stack, Python: b.PyStack}]
	return b.Seq > failed.first || category == featureMaps || again != nil && again.last > failed.first
}

// tellOlder says how many passes left the older part, and where.
func (c *composer) tellOlder() {
	for at, r := range c.older { // workspaces and caches, which the first iteration makes
		if r.count == 1 && r.first <= c.was {
			c.v.OlderBytes -= r.bytes
			c.v.FixedBytes += r.bytes
			delete(c.older, at)
		}
	}
	top := heaviest(c.older, func(*recurrence) bool { return true })
	if top == nil {
		return
	}
	c.v.OlderPasses, c.v.OlderSinceStep = top.count, top.first > c.stepped.last
	passes := top.count
	if c.v.Passes > 1 { // code may run several times in each
		passes = min(passes, c.v.Passes-1)
	}
	stacks, sites := 0, make(map[string]uint64)
	for pair, r := range c.older {
		if r.inModule && 2*r.count >= passes {
			stacks++
		}
		if c.Places {
			if s := c.Resolver.Stacks.Of(pair); s.Site != nil && s.Site.User {
				sites[s.Key] += r.bytes
			}
		}
	}
	c.v.KeepsGraphs = stacks > 2
	for site, bytes := range sites {
		if most := sites[c.v.OlderSite]; bytes > most || bytes == most && site < c.v.OlderSite {
			c.v.OlderSite = site
		}
	}
}

// runsModule reports whether a Python stack leads through a call of one of the framework's modules.
func (c *composer) runsModule(stack trace.StackID) bool {
	frames, _ := c.Resolver.Tables.PyStack(stack)
	return slices.ContainsFunc(frames, func(f trace.PyFrame) bool { return f.Self != 0 })
}
