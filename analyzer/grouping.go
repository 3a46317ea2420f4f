package analyzer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/callstack"
	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/trace"
)

const unknownThread = "(unknown)"

// grouping is one way to divide blocks among keys. The key of an origin is an identifier first; it becomes text when the dictionary is complete, or when a
// filter asks for it.
type grouping struct {
	name   string
	doc    string
	id     func(r *resolver, o *origin) uint64
	key    func(r *resolver, id uint64) string
	label  func(r *resolver, id uint64) string // what people read instead of the key; nil: the key itself
	stable func(key string) string             // the part of a key that is the same in two runs; nil: all of it
	moved  bool                                // what stable leaves out is a line: two runs' keys are matched one by one where that can be done
	stacks bool                                // keys come from call stacks: to make them, names are looked for in files
	// categories is what makes the keys of a grouping by rules; nil for others.
	categories *categorizer
	// text says that the key is a name that people choose or recognise, so that --focus and --ignore look at it.
	text bool
}

// groupings is the registry: everything that can stand behind "by". Order is the order in help texts.
var groupings = []grouping{
	{name: "tag", doc: "tag path set by the program", text: true,
		id: func(_ *resolver, o *origin) uint64 { return uint64(o.tag) },
		key: func(r *resolver, id uint64) string {
			if tag := r.tables.String(trace.StringID(id)); id != 0 && tag != "" {
				return tag
			}
			return report.Untagged
		}},
	{name: "name", doc: "what the framework calls it: parameters, gradients, buffers, optimizer state", text: true, id: nameID, key: nameKey},
	{name: "module", doc: "module of the model that asked for it, or that it is a parameter of", text: true, id: moduleID, key: moduleKey},
	{name: "phase", doc: "part of a training program: init, forward, recompute, backward, optimizer, data or other", stacks: true, id: phaseID, key: phaseKey},
	{name: "api", doc: "CUDA or framework call", text: true,
		id:  func(_ *resolver, o *origin) uint64 { return uint64(o.call) },
		key: func(_ *resolver, id uint64) string { return cuda.API(id).String() }},
	{name: "library", doc: "library that made the call", text: true,
		id:  func(r *resolver, o *origin) uint64 { return uint64(r.libraries.Of(o.stack)) },
		key: func(r *resolver, id uint64) string { return r.libraries.Name(uint32(id)) }},
	{name: "device", doc: "GPU",
		id:    func(_ *resolver, o *origin) uint64 { return uint64(deviceSlot(o.device)) },
		key:   func(_ *resolver, id uint64) string { return strconv.Itoa(int(id) - 1) },
		label: func(r *resolver, id uint64) string { return r.deviceLabel(int16(id) - 1) }},
	{name: "thread", doc: "thread of the program", text: true,
		id:     func(_ *resolver, o *origin) uint64 { return uint64(o.thread) },
		key:    threadKey,
		stable: withoutTID},
	{name: "site", doc: "place in the program: its innermost own function", stacks: true, moved: true, stable: callstack.WithoutLine, id: stackID, key: siteKey},
	{name: "inner", doc: "innermost Python line outside of the framework: inside of the library that drives the loop", stacks: true, moved: true, stable: callstack.WithoutLine, id: stackID, key: innerKey, label: innerLabel},
	{name: "operator", doc: "operator of the framework, such as aten::mm", stacks: true, text: true, id: stackID, key: operatorText},
	{name: "function", doc: "function of that place", stacks: true, id: stackID, key: functionKey},
	{name: "file", doc: "file of that place", stacks: true, id: stackID, key: fileKey},
	{name: "line", doc: "line of that place", stacks: true, moved: true, stable: callstack.WithoutLine, id: stackID, key: lineKey},
}

// GroupingNames lists every value that Options.Groupings accepts, in the order in which help texts show them.
func GroupingNames() []string {
	list := make([]string, len(groupings))
	for i, g := range groupings {
		list[i] = g.name
	}
	return list
}

// GroupingDoc says in a few words what a grouping divides by, "" for an unknown name.
func GroupingDoc(name string) string {
	if g := findGrouping(name); g != nil {
		return g.doc
	}
	return ""
}

func findGrouping(name string) *grouping {
	for i := range groupings {
		if groupings[i].name == name {
			return &groupings[i]
		}
	}
	return nil
}

// pickGroupings looks names up, dropping repetitions. Names of groupings by rules go before those of the registry.
func pickGroupings(wanted []string, byRules []*grouping) ([]*grouping, error) {
	var picked []*grouping
	seen := make(map[string]bool, len(wanted))
	for _, name := range wanted {
		g := findGrouping(name)
		if i := slices.IndexFunc(byRules, func(g *grouping) bool { return g.name == name }); i >= 0 {
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

// resolver turns identifiers into text.
type resolver struct {
	tables    *trace.Tables
	libraries *callstack.Libraries
	stacks    *callstack.Stacks
	module    func(python trace.StackID) trace.StringID // innermost module of a Python stack, by the latest names
	phaseList *phases
	lifetimes bool // are known
}

// deviceSlot is a device's index in slices that hold the unknown device first.
func deviceSlot(device int16) int { return max(int(device), -1) + 1 }

func (r *resolver) deviceName(index int16) string {
	for _, d := range r.tables.Devices() {
		if d.Index == index {
			return d.Name
		}
	}
	return ""
}

func (r *resolver) deviceLabel(index int16) string {
	if index < 0 {
		return "(unknown device)"
	}
	return strings.TrimSpace(strconv.Itoa(int(index)) + " " + r.deviceName(index))
}

func threadKey(r *resolver, id uint64) string {
	th, ok := r.tables.Thread(trace.ThreadID(id))
	switch {
	case !ok:
		return unknownThread
	case th.Name == "":
		return fmt.Sprintf("thread (%d)", th.TID)
	}
	return fmt.Sprintf("%s (%d)", th.Name, th.TID)
}

// withoutTID drops the kernel's thread number, which differs from run to run.
func withoutTID(key string) string {
	if i := strings.LastIndex(key, " ("); i > 0 && strings.HasSuffix(key, ")") {
		return key[:i]
	}
	return key
}
