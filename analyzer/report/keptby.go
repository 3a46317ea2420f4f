package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"memtrace/trace"
)

// When the library looks for what refers to tensors by itself.
const (
	KeptAtOOM = "oom" // when PyTorch's allocator gave up for the first time
	KeptAtEnd = "end" // before the interpreter ended, where memory had grown
	// while the program ran, and memory had grown so far
	KeptWhileGrowing = "growth"
)

// KeptBy is what the library found about who refers to PyTorch's tensors on devices, without being asked.
type KeptBy struct {
	Occasion string `json:"occasion,omitempty"` // "oom", "end" or "growth"; "" where it was skipped
	// with "growth": what the framework's allocator had given out then
	AllocatedBytes uint64 `json:"allocated_bytes,omitempty"`
	Skipped        string `json:"skipped,omitempty"` // why it was
	DurationNS     int64  `json:"duration_ns,omitempty"`
	Late           bool   `json:"late,omitempty"`     // it was cut short
	Tensors        uint64 `json:"tensors,omitempty"`  // on devices
	LeftOut        uint64 `json:"left_out,omitempty"` // holders for which there was no room
	Holders        []Kept `json:"holders,omitempty"`  // what is freed with each, the most first
}

// Kept is tensors that are reached in the same way, and what is freed when that way ends: what no other way leads to,
// and no other autograd graph has saved.
type Kept struct {
	trace.Holder
	FreesBytes uint64 `json:"frees_bytes"`
	// what graphs have is estimated, from what they computed
	FreesAbout  bool   `json:"frees_about,omitempty"`
	FreesAtMost bool   `json:"frees_at_most,omitempty"` // it is the most
	SharedBytes uint64 `json:"shared_bytes,omitempty"`  // what others hold as well
}

// Graphs reports whether holders have autograd graphs, and what all of them have where none does. k may be nil.
func (k *KeptBy) Graphs() (found bool, graphlessBytes uint64) {
	if k == nil {
		return false, 0
	}
	for i := range k.Holders {
		if k.Holders[i].GraphNodes > 0 {
			return true, 0
		}
		graphlessBytes += k.Holders[i].FreesBytes + k.Holders[i].SharedBytes
	}
	return false, graphlessBytes
}

// KeptUnknown is the path of tensors that the search had not reached when it was cut short.
const KeptUnknown = "?"

// containers are the types of Python that say nothing of what they are for.
var containers = []string{"list", "tuple", "dict", "set"}

// Name is how the tensors are reached, and why no name leads to them where none does. A container without a name is
// most often one that a call that runs was given, or that a hook of the program made of what a graph saves.
func (h *Kept) Name() string {
	path, nameless := strings.CutPrefix(h.Path, "?")
	if h.Path == KeptUnknown {
		return "not known: the time was over"
	}
	if !nameless || h.Garbage {
		return path
	}
	if inside, found := h.container(); found {
		if inside == "" || inside == "[*]" {
			path, _, _ = strings.Cut("a "+path, "[")
		}
		return path + " that no Python variable leads to, as an argument of a call that runs or made by a saved " +
			"tensor's hook"
	}
	return path + " that no Python variable leads to, as where C++ code holds it"
}

// Orphans ends the path of parameters that only an optimizer has, as where a model was replaced and its optimizer was
// not, and of what these and the optimizer have for them (python/memtrace/_paths.py).
const Orphans = " (parameters that nothing else has)"

// By is what keeps the tensors, after "kept".
func (h *Kept) By() string {
	if strings.HasPrefix(h.Path, "in ") { // a function that runs
		return h.Name()
	}
	return "by " + h.Name()
}

// IsOrphans reports whether a holder is an optimizer with parameters that nothing else has.
func (h *Kept) IsOrphans() bool { return strings.HasSuffix(h.Path, Orphans) }

// IsModel reports whether a holder is what a model is kept by: the tensors are parameters, their gradients, or an
// optimizer's.
func (h *Kept) IsModel() bool {
	if h.IsOrphans() {
		return false
	}
	types := h.Types
	if strings.HasSuffix(h.Path, ".grad") {
		types = strings.TrimSuffix(types, ", Tensor")
	}
	return strings.HasSuffix(types, "Parameter") || strings.Contains(h.Path, ".param_groups[") ||
		strings.Contains(h.Path, ".state[")
}

// IsOfForward reports whether a forward pass that runs has the tensors in a variable of its own, not by its module.
func (h *Kept) IsOfForward() bool {
	_, variable, _ := strings.Cut(h.Path, ", variable ")
	return strings.HasPrefix(h.Path, "in forward (") && !strings.HasPrefix(variable, "self.")
}

// IsArgument reports whether what holds the tensors is a container without a name, as a call that runs was given.
func (h *Kept) IsArgument() bool {
	_, found := h.container()
	return found && !h.Garbage
}

// container is what follows on a container of Python's without a name, if the path begins with one.
func (h *Kept) container() (inside string, found bool) {
	path, nameless := strings.CutPrefix(h.Path, "?")
	for _, kind := range containers {
		if inside, found = strings.CutPrefix(path, kind); nameless && found && !startsWord(inside) {
			return inside, true
		}
	}
	return "", false
}

// startsWord reports whether a text goes on with a letter, a digit or an underscore.
func startsWord(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return text != "" && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r))
}

// keptByOf reads what a recording has of it by a key; nil where there was nothing to look for. inTensors returns, of
// what the framework's allocator had given out then, what tensors may have, at most: what no tensor of Python's
// accounts for is what graphs have saved, where PyTorch does not say so itself. latest is how much of it the latest
// forward pass made.
func keptByOf(info trace.Info, key string, inTensors func(allocated uint64) uint64, latest uint64) *KeptBy {
	first, text, _ := strings.Cut(info[key], "\n")
	fields := strings.Split(first, "\t")
	found, err := trace.ParseReferrers(text)
	if err != nil || len(fields) != 3 || !slices.Contains([]string{KeptAtOOM, KeptAtEnd, KeptWhileGrowing}, fields[0]) {
		return nil
	}
	duration, badDuration := strconv.ParseInt(fields[1], 10, 64)
	allocated, badAllocated := strconv.ParseUint(fields[2], 10, 64)
	if badDuration != nil || badAllocated != nil {
		return nil
	}
	k := &KeptBy{Occasion: fields[0], DurationNS: duration, Late: found.Late, Tensors: found.Tensors,
		LeftOut: found.LeftOut}
	found.Holders = slices.DeleteFunc(found.Holders, func(h trace.Holder) bool { return h.Device == trace.OnHost })
	had := inTensors(allocated)
	if k.Occasion == KeptWhileGrowing {
		k.AllocatedBytes = allocated
	}
	k.Holders = KeptOf(found.Holders, had-min(had, found.Bytes), latest)
	return k
}

// KeptOf lists holders by what is freed with each, the most first. saved is at most how many bytes their graphs have
// saved, where PyTorch does not say it; what the latest forward pass made is not saved by graphs of earlier ones.
func KeptOf(holders []trace.Holder, saved, latest uint64) (list []Kept) {
	earlier := saved - min(saved, latest)
	var all graphOutputs
	for _, h := range holders {
		if !h.Earlier || earlier > 0 {
			all.add(&h)
		}
	}
	for _, h := range holders {
		most := saved
		if h.Earlier {
			most = earlier
		}
		list = append(list, keptOf(h, most, all))
	}
	slices.SortStableFunc(list, func(a, b Kept) int {
		return cmp.Or(cmp.Compare(b.FreesBytes, a.FreesBytes), cmp.Compare(b.SharedBytes, a.SharedBytes))
	})
	return list
}

// graphOutputs is what the graphs of all holders have computed.
type graphOutputs struct {
	sum   uint64 // where holders share graphs, more than once
	ended uint64 // of single ways
	most  uint64 // of a single holder
}

func (o *graphOutputs) add(h *trace.Holder) {
	o.sum, o.most = o.sum+h.GraphOutputs, max(o.most, h.GraphOutputs)
	if h.EndsKnown {
		o.ended += h.EndsOutputs
	}
}

// nearly is the least part that counts as all.
const nearly = 0.9

// bound reports whether graphs can have saved no more than they computed: where all together have computed less, as a
// recurrent layer of cuDNN does, nobody knows which of them has saved the rest.
func (o *graphOutputs) bound(saved uint64) bool {
	return float64(max(o.ended, o.most)) >= nearly*float64(saved)
}

// keptOf is a holder among others whose graphs have computed so many outputs in all.
func keptOf(h trace.Holder, saved uint64, all graphOutputs) Kept {
	row := Kept{Holder: h, FreesBytes: h.EndsBytes, FreesAtMost: !h.EndsSurely}
	if !h.EndsKnown { // a recording of before that was looked for
		row.FreesBytes, row.FreesAtMost = h.Bytes+h.GraphBytes, !h.Garbage
		h.EndsOutputs = h.GraphOutputs
	}
	whole := h.Bytes + h.GraphBytes
	if h.GraphBytes == 0 && h.GraphOutputs > 0 && saved >= row.FreesBytes/100 { // the rounding of blocks is less
		graphs, sure := savedBy(h.EndsOutputs, saved, all)
		row.FreesBytes, row.FreesAbout = row.FreesBytes+graphs, graphs > 0 && sure
		row.FreesAtMost = row.FreesAtMost || graphs > 0 && !sure
		whole += all.share(h.GraphOutputs, saved)
	}
	row.SharedBytes = whole - min(whole, row.FreesBytes)
	return row
}

// savedBy is what graphs that have computed some of all outputs have saved of what all have: as much, about, where they
// are all graphs and have computed nearly as much; otherwise at most, and sure is false.
func savedBy(computed, saved uint64, all graphOutputs) (bytes uint64, sure bool) {
	switch {
	case computed == 0:
		return 0, true
	case !all.bound(saved):
		return saved, false
	}
	return min(saved, computed), computed >= all.sum
}

// share is what graphs that have computed so much have saved, others hold it or not: as much, or their part where all
// have saved more than that.
func (o *graphOutputs) share(computed, saved uint64) uint64 {
	if known := max(o.ended, o.most); !o.bound(saved) {
		return min(saved, uint64(float64(saved)*float64(computed)/float64(known)))
	}
	return min(saved, computed)
}

// FirstFailure is when the framework's allocator first gave up, which KeptBy with KeptAtOOM is of; nil where it never
// did.
func (s *Summary) FirstFailure() *OOMEvent {
	for i := range s.OOM.Events {
		if e := &s.OOM.Events[i]; e.Level == "framework" && e.Outcome == OOMFailed {
			return e
		}
	}
	return nil
}

// AllocatedAtOOM is what the framework had in blocks then; 0 where its allocator never gave up.
func (s *Summary) AllocatedAtOOM() uint64 {
	if e := s.FirstFailure(); e != nil {
		return e.AllocatedBytes
	}
	return 0
}

// KeptByIn is what was found in a whole run. scratch returns how much of what the framework's allocator had given out
// at the end libraries worked in.
func (s *Summary) KeptByIn(info trace.Info, scratch func() uint64) *KeptBy {
	inTensors := func(allocated uint64) uint64 { return allocated - min(allocated, scratch()) }
	growing := keptByOf(info, trace.ReferrersGrowingKey, inTensors, 0)
	if e := s.FirstFailure(); e != nil {
		if k := KeptByAt(info, e); k == nil || k.Skipped == "" || growing == nil {
			return k
		}
		return growing
	}
	end := keptByFirst(info, inTensors, 0)
	if growing == nil || end != nil && !growing.namesMore(end) {
		return end
	}
	return growing
}

// namesMore reports whether holders with a name have far more than at the end, beside what an iteration had then.
func (k *KeptBy) namesMore(end *KeptBy) bool {
	const much = 10 // as a divisor
	named := k.named()
	return named > 2*end.named() && named >= k.AllocatedBytes/much
}

// keptByFirst is what was found at the one moment at which the library waits for it, or why it did not look.
func keptByFirst(info trace.Info, inTensors func(allocated uint64) uint64, latest uint64) *KeptBy {
	if why := info[trace.ReferrersSkippedKey]; why != "" {
		return &KeptBy{Skipped: why}
	}
	return keptByOf(info, trace.ReferrersKey, inTensors, latest)
}

// named is how much is freed with holders that have a name, beside a model. At the end of a program its functions have
// returned, and what their variables had has no name, or is garbage.
func (k *KeptBy) named() (bytes uint64) {
	for i := range k.Holders {
		if h := &k.Holders[i]; !h.Garbage && h.Path != KeptUnknown && !h.IsModel() {
			bytes += h.FreesBytes
		}
	}
	return bytes
}

// KeptByAt is what was found when memory ran out.
func KeptByAt(info trace.Info, e *OOMEvent) *KeptBy {
	var latest uint64
	if e.Composition != nil {
		latest = e.Composition.IterationFeatureBytes
	}
	return keptByFirst(info, func(uint64) uint64 { return e.TensorBytes() }, latest)
}

// neverSaved are the categories of what no tensor of Python's accounts for, and no graph saves. What is temporary where
// memory runs out was made by an optimizer's step.
var neverSaved = []string{"Workspace", "Library", "Communication buckets", "Intermediate gradients", "Temporary"}

// TensorBytes is what the framework had in blocks that tensors may have.
func (e *OOMEvent) TensorBytes() uint64 {
	bytes := e.AllocatedBytes
	for _, c := range e.Categories {
		if slices.Contains(neverSaved, c.Category) {
			bytes -= min(bytes, c.Bytes)
		}
	}
	return bytes
}
