package report

import "fmt"

// Training is the memory of a training program by iteration, parameter and module. It describes the level that reports
// put first. Sizes are those of blocks unless stated otherwise, so that they add up to the level's.
type Training struct {
	Level string `json:"level"` // "framework" or "driver"
	Rules string `json:"rules"` // name of the rule set that the categories are of
	// the columns of all moments, in the order of the rules; rules.Others is the last one
	Categories   []string `json:"categories"`
	IterationsBy string   `json:"iterations_by"` // one of the IterationsBy constants
	// what ends an iteration: "steps of AdamW"; "" without iterations
	Iterated string `json:"iterated"`

	// Adapters are the states of the recorder's scripts that name memory, by framework: "on", or "off: " and why. A
	// missing framework was not loaded, or was excluded by MEMTRACE_ADAPTERS. Never nil.
	Adapters map[string]string `json:"adapters"`

	// Iterations are those that ended, and finally the part after them. The first one includes everything before it.
	Iterations []Iteration `json:"iterations"`
	LeftOut    uint64      `json:"left_out"` // iterations that are not listed: those beyond MaxIterations, or that a profile left out

	// optimizers whose steps were reported, each object counted
	OptimizerCount uint64 `json:"optimizer_count"`
	// what forward passes kept at the peak for backward passes that never came, of lines of the program of which none
	// was differentiated; absent if nothing, or if the recorder could not tell
	Undifferentiated *Undifferentiated `json:"undifferentiated,omitempty"`
	// the same of lines of which others were, and where a pass's line is not known, without the pass that ran at the
	// peak or before it
	Abandoned *Undifferentiated `json:"abandoned,omitempty"`
	// what the memory was for when the framework's allocator gave up, the first times
	OutOfMemory []OOMCategories `json:"out_of_memory"`

	Parameters []Parameter `json:"parameters"` // that the framework named, in the order in which it did
	// the tree, at the moments of the iteration with the highest peak; nil if no module is known
	Modules *Module `json:"modules,omitempty"`
	Highest int     `json:"highest"` // index of that iteration; -1 without one

	Phases []PhaseSpan `json:"-"` // in the order of time; Timeline has them in JSON
}

// OOMCategories is the level's memory by category at one moment at which memory ran out.
type OOMCategories struct {
	TimeNS int64    `json:"time_ns"`
	Bytes  uint64   `json:"bytes"` // sum of Held
	Held   []uint64 `json:"held"`  // by category
}

// Undifferentiated is what forward passes kept at the peak for a backward pass, of those that none went through before
// their memory was given up or the program ended. What they would have had without a graph does not count.
type Undifferentiated struct {
	Passes uint64 `json:"passes"`
	Bytes  uint64 `json:"bytes"`
	Site   string `json:"site"` // the program's line that ran the one that kept most; "" unknown
}

// MaxOOMCategories bounds Training.OutOfMemory.
const MaxOOMCategories = 32

// MaxIterations bounds Training.Iterations.
const MaxIterations = 100_000

// What ends an iteration.
const (
	IterationsByStep      = "step"      // memtrace.step()
	IterationsByOptimizer = "optimizer" // the optimizer that stepped most often finished a step
	IterationsByRange     = "range"     // the beginning of a range named like an iteration, of NVTX or memtrace.tag
	IterationsByPeriod    = "period"    // an allocation that returns at even distances
	IterationsByNothing   = "none"      // the whole run is one
)

// Iteration is one pass of the training loop.
type Iteration struct {
	Number  uint64 `json:"number"` // from 1; for memtrace.step() the program's own number
	Epoch   uint64 `json:"epoch"`  // that the program announced last, 0 none
	Ended   bool   `json:"ended"`  // false: the part after the last end of an iteration
	StartNS int64  `json:"start_ns"`
	EndNS   int64  `json:"end_ns"`

	Peak IterationMoment `json:"peak"` // of the whole iteration
	// highest moment at which forward code allocated; nil if it did not
	Forward   *IterationMoment `json:"forward,omitempty"`
	Backward  *IterationMoment `json:"backward,omitempty"`  // the same of the backward pass
	Optimizer *IterationMoment `json:"optimizer,omitempty"` // and of the optimizer
	// by category: its own highest bytes, each at a different moment
	Highest []uint64 `json:"highest"`
	End     []uint64 `json:"end"` // by category: bytes when the iteration ended
	// by category: what of End was there when the iteration began; nil of profiles that do not have it
	Stayed []uint64 `json:"stayed"`

	ReservedPeakBytes uint64 `json:"reserved_peak_bytes"` // held by the framework's allocator; 0 if there is none
	ReservedEndBytes  uint64 `json:"reserved_end_bytes"`

	// of the framework's blocks when the iteration ended, as of a Level
	RequestedEnd *Requested `json:"requested_end,omitempty"`

	AllocCount uint64 `json:"alloc_count"`
	FreeCount  uint64 `json:"free_count"`
}

// IterationMoment is the memory at one moment.
type IterationMoment struct {
	TimeNS int64    `json:"time_ns"`
	Phase  string   `json:"phase"` // of the allocation that reached it, one of rules.Words(rules.Phase)
	Bytes  uint64   `json:"bytes"` // sum of Held
	Held   []uint64 `json:"held"`  // by category
}

// Parameter is a parameter or buffer of a model, with the memory that belongs to it. Bytes are those of the elements,
// as the framework counts them; BlockBytes are those of the blocks that hold them, which are rounded and may be shared.
type Parameter struct {
	Name       string  `json:"name"`
	Category   string  `json:"category"` // "parameter", "buffer", or "optimizer": what one keeps for itself
	Bytes      uint64  `json:"bytes"`
	BlockBytes uint64  `json:"block_bytes"`
	Gradient   uint64  `json:"gradient_bytes"`
	GradBlock  uint64  `json:"gradient_block_bytes"`
	States     []State `json:"states"` // of optimizers, by name

	// of all these blocks, as of a Level; nil where it is known of none
	Requested *Requested `json:"requested,omitempty"`

	FromNS int64 `json:"-"` // when the first block was allocated that had the parameter
}

// StateBytes sums up what optimizers keep for a parameter, and the blocks that hold it.
func (p *Parameter) StateBytes() (bytes, blocks uint64) {
	for i := range p.States {
		bytes += p.States[i].Bytes
		blocks += p.States[i].BlockBytes
	}
	return bytes, blocks
}

// State is an optimizer's state for a parameter under one name, such as exp_avg.
type State struct {
	Name       string `json:"name"`
	Bytes      uint64 `json:"bytes"`
	BlockBytes uint64 `json:"block_bytes"`
}

// Module is a node of the tree of modules. Memory without a known module is in a child of the root named NoModule.
type Module struct {
	Name     string        `json:"name"`     // last part of the path; of the root ""
	Path     string        `json:"path"`     // the framework's qualified name
	Backward bool          `json:"backward"` // a backward pass allocated for it or for a module below it
	Moments  []ModuleBytes `json:"moments"`
	Children []Module      `json:"children"` // largest subtree at the peak first
}

// ModuleBytes is the memory of a module at one moment.
type ModuleBytes struct {
	Moment  string   `json:"moment"`  // "peak", "forward", "backward" or "optimizer": the moments of the iteration
	Own     []uint64 `json:"own"`     // by category
	Subtree []uint64 `json:"subtree"` // by category, with all modules below
}

// Moment returns what a module and those below it held at a moment, by category.
func (m *Module) Moment(name string) []uint64 {
	for i := range m.Moments {
		if m.Moments[i].Moment == name {
			return m.Moments[i].Subtree
		}
	}
	return nil
}

// Trains reports whether a framework described the purpose of its memory.
func (s *Summary) Trains() bool { return s.Training != nil && len(s.Training.Parameters) > 0 }

// EndOf returns when the iteration of a number ended; found is false where none did. t may be nil.
func (t *Training) EndOf(number uint64) (timeNS int64, found bool) {
	if t == nil || t.IterationsBy == IterationsByNothing {
		return 0, false
	}
	for i := range t.Iterations {
		if it := &t.Iterations[i]; it.Ended && it.Number == number {
			return it.EndNS, true
		}
	}
	return 0, false
}

// EndedWords describes of which iterations the end is known. t may be nil.
func (t *Training) EndedWords() string {
	if t == nil || t.IterationsBy == IterationsByNothing {
		return "no iterations were detected; call memtrace.step() in the training loop"
	}
	var first, last uint64
	for i := range t.Iterations {
		if it := &t.Iterations[i]; it.Ended {
			if last = it.Number; first == 0 {
				first = last
			}
		}
	}
	if last == 0 {
		return "the first iteration did not end"
	}
	return fmt.Sprintf("the iterations whose end is known are %d to %d", first, last)
}

// IsBefore reports whether the entry at an index is not an iteration but the part of a compacted trace before the first
// one: of that part only the highest peak is known.
func (t *Training) IsBefore(index int) bool {
	return index == 0 && len(t.Iterations) > 1 && !t.Iterations[0].Ended
}

func SumOf(values []uint64) (sum uint64) {
	for _, v := range values {
		sum += v
	}
	return sum
}
