package profile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/callstack"
	"memtrace/trace"
)

const unknownThread = "(unknown)"

// Grouping is one way to divide blocks among keys. The key of an origin is an identifier first; it becomes text when
// the dictionary is complete, or when a filter needs it.
type Grouping struct {
	Name   string
	doc    string
	ID     func(r *Resolver, o *Origin) uint64
	Key    func(r *Resolver, id uint64) string
	Label  func(r *Resolver, id uint64) string // displayed instead of the key; nil: the key itself
	Stable func(key string) string             // the part of a key that is the same in two runs; nil: all of it
	// what stable leaves out is a line: two runs' keys are matched one by one where that can be done
	Moved bool
	// keys come from call stacks: names are looked up in files
	Stacks bool
	// ByStack: the identifiers are those of the grouping ByStack.
	ByStack bool
	// categories creates the keys of a grouping by rules; nil for others.
	Categories *Categorizer
	// text: the key is a name that users choose or recognise; --focus and --ignore match it.
	text bool
}

// groupings is the registry: all values of --by. Order is the order in help texts.
var groupings = []Grouping{
	{Name: "tag", doc: "tag path set by the program", text: true,
		ID: func(_ *Resolver, o *Origin) uint64 { return uint64(o.Tag) },
		Key: func(r *Resolver, id uint64) string {
			if tag := r.Tables.String(trace.StringID(id)); id != 0 && tag != "" {
				return tag
			}
			return report.Untagged
		}},
	{Name: "name", doc: "what the framework calls it: parameters, gradients, buffers, optimizer state", text: true,
		ID: nameID, Key: nameKey},
	{Name: "module", doc: "module of the model that allocated it, or whose parameter it is", text: true, ID: ModuleID,
		Key: ModuleKey},
	{Name: "phase", doc: "part of a training program: init, forward, recompute, backward, optimizer, data or other",
		Stacks: true, ID: phaseID, Key: phaseKey},
	{Name: "api", doc: "CUDA or framework call", text: true,
		ID: func(_ *Resolver, o *Origin) uint64 { return uint64(o.call) },
		Key: func(_ *Resolver, id uint64) string {
			if cuda.API(id) == cuda.APINone {
				return report.UnknownCall
			}
			return cuda.API(id).String()
		}},
	{Name: "library", doc: "library that made the call", text: true,
		ID:  func(r *Resolver, o *Origin) uint64 { return uint64(r.Libraries.Of(o.Stack)) },
		Key: func(r *Resolver, id uint64) string { return r.Libraries.Name(uint32(id)) }},
	{Name: "device", doc: "GPU",
		ID:    func(_ *Resolver, o *Origin) uint64 { return uint64(DeviceSlot(o.Device)) },
		Key:   func(_ *Resolver, id uint64) string { return strconv.Itoa(int(id) - 1) },
		Label: func(r *Resolver, id uint64) string { return r.deviceLabel(int16(id) - 1) }},
	{Name: "thread", doc: "thread of the program", text: true,
		ID:     func(_ *Resolver, o *Origin) uint64 { return uint64(o.Thread) },
		Key:    ThreadKey,
		Stable: WithoutTID},
	{Name: "stream", doc: "CUDA stream that it was allocated for", ID: streamID, Key: streamKey, Label: streamLabel},
	{Name: "pool", doc: "private pool of PyTorch's allocator, of a graph or a MemPool, or the common one", ID: poolID,
		Key: poolKey, Stable: poolKind},
	{Name: "site", doc: "place in the program: its innermost own function", Stacks: true, Moved: true,
		Stable: callstack.WithoutLine, ByStack: true, ID: StackID, Key: SiteKey},
	{Name: "inner", doc: "innermost Python line outside of the framework: of a trainer, its own",
		Stacks: true, Moved: true, Stable: callstack.WithoutLine, ByStack: true, ID: StackID, Key: InnerKey,
		Label: InnerLabel},
	{Name: "operator", doc: "operator of the framework, such as aten::mm", Stacks: true, text: true, ByStack: true,
		ID: StackID, Key: OperatorText},
	{Name: "function", doc: "function of the site", Stacks: true, ByStack: true, ID: StackID, Key: functionKey},
	{Name: "file", doc: "source file of the site", Stacks: true, ByStack: true, ID: StackID, Key: fileKey},
	{Name: "line", doc: "line of the site", Stacks: true, Moved: true, Stable: callstack.WithoutLine, ByStack: true,
		ID: StackID, Key: lineKey},
}

// GroupingNames lists every value that Question.Groupings accepts, in the order in which help texts show them.
func GroupingNames() []string {
	list := make([]string, len(groupings))
	for i, g := range groupings {
		list[i] = g.Name
	}
	return list
}

// GroupingDoc says in some words by what a grouping of GroupingNames divides memory.
func GroupingDoc(name string) string { return FindGrouping(name).doc }

func FindGrouping(name string) *Grouping {
	for i := range groupings {
		if groupings[i].Name == name {
			return &groupings[i]
		}
	}
	return nil
}

// PickGroupings finds groupings by name, without repetitions. Names of groupings by rules take precedence over those of
// the registry.
func PickGroupings(wanted []string, byRules []*Grouping) ([]*Grouping, error) {
	var picked []*Grouping
	seen := make(map[string]bool, len(wanted))
	for _, name := range wanted {
		g := FindGrouping(name)
		if i := slices.IndexFunc(byRules, func(g *Grouping) bool { return g.Name == name }); i >= 0 {
			g = byRules[i]
		}
		if g == nil {
			return nil, fmt.Errorf("cannot group by %q; choose from %s", name, strings.Join(GroupingNames(), ", "))
		}
		if !seen[name] {
			seen[name] = true
			picked = append(picked, g)
		}
	}
	return picked, nil
}

// Counting returns the groupings by which retired cells must be counted so that every grouping stays available
// afterwards: those of the registry and those by rules, and ByStack for all that have its identifiers.
func Counting(byRules []*Grouping) []*Grouping {
	var list []*Grouping
	for i := range groupings {
		if !groupings[i].ByStack {
			list = append(list, &groupings[i])
		}
	}
	return append(append(list, byRules...), &ByStack)
}

// Resolver turns identifiers into text.
type Resolver struct {
	Tables    *trace.Tables
	Libraries *callstack.Libraries
	Stacks    *callstack.Stacks
	Module    func(python trace.StackID) trace.StringID // innermost module of a Python stack, by the latest names
	phaseList *phases
	Lifetimes bool // are known
	Places    Places

	StreamsKnown, PoolsKnown bool // the trace contains the streams of the framework's blocks, and their pools
}

// DeviceSlot is a device's index in slices that hold the unknown device first.
func DeviceSlot(device int16) int { return max(int(device), -1) + 1 }

func (r *Resolver) deviceName(index int16) string {
	for _, d := range r.Tables.Devices() {
		if d.Index == index {
			return d.Name
		}
	}
	return ""
}

func (r *Resolver) deviceLabel(index int16) string {
	if index < 0 {
		return "(unknown device)"
	}
	return strings.TrimSpace(strconv.Itoa(int(index)) + " " + r.deviceName(index))
}

func ThreadKey(r *Resolver, id uint64) string {
	th, ok := r.Tables.Thread(trace.ThreadID(id))
	switch {
	case !ok:
		return unknownThread
	case th.Name == "":
		return fmt.Sprintf("thread (%d)", th.TID)
	}
	return fmt.Sprintf("%s (%d)", th.Name, th.TID)
}

// WithoutTID drops the kernel's thread number, which differs from run to run.
func WithoutTID(key string) string {
	if i := strings.LastIndex(key, " ("); i > 0 && strings.HasSuffix(key, ")") {
		return key[:i]
	}
	return key
}
