package report

// OOMComposition is what a framework's blocks on a device consisted of at a moment, by how long each part is meant to
// stay. The first three sums add up to the blocks. An iteration begins with a step of an optimizer or of the program;
// where the same forward pass ran several times since, it is the last of these passes.
type OOMComposition struct {
	// parameters and their gradients, optimizer state, buffers, workspaces, and what was there before the first
	// iteration
	FixedBytes uint64 `json:"fixed_bytes"`
	// of this iteration, and none of these; see KnowsIteration
	IterationBytes uint64 `json:"iteration_bytes"`
	OlderBytes     uint64 `json:"older_bytes"` // of earlier iterations or passes, and none of these

	// among IterationBytes: activations, and what goes with the size of a batch: these, their gradients and inputs
	IterationFeatureBytes uint64 `json:"iteration_feature_bytes"`
	IterationBatchBytes   uint64 `json:"iteration_batch_bytes"`

	// among FixedBytes, by how many bytes an element has
	Parameters     ElementWidths `json:"-"`
	OptimizerState ElementWidths `json:"-"`

	// blocks of the call stack that made most of the older part: about how many iterations or passes left it, unless
	// that code runs several times in one
	OlderPasses    uint64 `json:"older_passes"`
	OlderSite      string `json:"older_site,omitempty"` // place of the program that asked for most of it
	OlderSinceStep bool   `json:"older_since_step"`     // most of it came after the last step
	// the older part has activations of whole passes, which a backward pass would have freed
	KeepsGraphs bool `json:"keeps_graphs"`

	Stepped bool `json:"stepped"` // there was a step
	// how often the same code ran since the last step, the latest run among them, where it did several times: forward
	// passes, as far as known
	Passes uint64 `json:"passes"`

	LeftBytes          uint64 `json:"left_bytes"` // made by attempts that failed before this one: see OOMRetries
	LeftIterationBytes uint64 `json:"-"`          // of it, what is among IterationBytes; the rest is older

	// among IterationFeatureBytes, what repeats: what code that ran several times in this iteration made after its
	// first run. It may be of a loop in one pass, or of several passes
	RepeatedBytes uint64 `json:"-"`

	// among IterationFeatureBytes, made outside of all modules, as by a loss function; 0 where no modules are known
	LooseFeatureBytes uint64 `json:"-"`

	// among IterationFeatureBytes, of code that first ran in this iteration, as in another stage of a training
	NewCodeBytes uint64 `json:"-"`

	// temporaries of an optimizer's step that makes them for many parameters at once, its name as in
	// _multi_tensor_adam, and the largest parameter
	MultiTensorBytes      uint64 `json:"-"`
	MultiTensorOf         string `json:"-"`
	LargestParameterBytes uint64 `json:"-"`
}

// ElementWidths is memory by how many bytes each of its elements has.
type ElementWidths struct {
	OneByte      uint64
	TwoBytes     uint64
	WideBytes    uint64 // with more
	UnknownBytes uint64
}

// Narrow is what has elements of at most two bytes.
func (w *ElementWidths) Narrow() uint64 { return w.OneByte + w.TwoBytes }

// Bytes is the sum of the parts: all that is in blocks.
func (c *OOMComposition) Bytes() uint64 { return c.FixedBytes + c.IterationBytes + c.OlderBytes }

// KnowsIteration reports whether IterationBytes are of this iteration. Where no step was seen, and the same code did
// not run several times, that is only known of activations, and of what came after an attempt that failed.
func (c *OOMComposition) KnowsIteration() bool {
	return c.Stepped || c.Passes > 1 || c.LeftBytes > 0 || 2*c.IterationFeatureBytes >= c.IterationBytes
}

// RunWords says how often the same code ran, and since when.
func (c *OOMComposition) RunWords() string {
	since := "the beginning"
	if c.Stepped {
		since = "the last step"
	}
	return Number(c.Passes) + " runs of the same code since " + since
}

// leakPasses is from how many earlier iterations something must come to count as kept by mistake: outputs of the last
// one, and batches that were read ahead, are usual.
const leakPasses = 3

// Keeps reports whether earlier iterations left enough behind for it to be worth the words: a good part of what is in
// use, or what a request needs.
func (c *OOMComposition) Keeps(used, missing uint64) bool {
	return c != nil && c.OlderPasses >= leakPasses &&
		(c.OlderBytes >= used/5 && c.OlderBytes > 0 || missing > 0 && c.OlderBytes >= missing)
}
