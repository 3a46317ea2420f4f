package analyzer

import (
	"slices"
	"strings"

	"memtrace/analyzer/callstack"
	"memtrace/analyzer/rules"
	"memtrace/analyzer/symbol"
	"memtrace/trace"
)

// RuleGrouping is a grouping whose keys are the categories of a set of rules. In multi-match mode, what belongs to several categories is a key of its own, "RNN + Embedding",
// so that rows add up here as everywhere; Categories alone counts a block more than once.
type RuleGrouping struct {
	Name  string // as Options.Groupings has it
	Rules *rules.Set
}

// categorizer answers what categories origins belong to. What the rules do not look at is left out of the question, and every question is asked once.
type categorizer struct {
	set     *rules.Set
	matcher *rules.Matcher
	bounds  []uint64 // of the collector's size classes

	usesTag, usesCall, usesLibrary, usesStack, usesThread, usesName, usesModule, usesLifetime bool

	index   map[origin]uint64
	origins []origin            // by identifier
	found   map[uint64][]string // by identifier; nil value: none
	named   *symbol.Resolver    // that names were found with, as they may be found anew
}

func newCategorizer(set *rules.Set, bounds []uint64) *categorizer {
	k := &categorizer{set: set, bounds: bounds, index: make(map[origin]uint64)}
	k.usesTag, k.usesCall, k.usesLibrary, k.usesThread = set.Uses(rules.Tag), set.Uses(rules.API), set.Uses(rules.Library), set.Uses(rules.Phase)
	k.usesName, k.usesModule, k.usesLifetime = set.Uses(rules.Name), set.Uses(rules.Module), set.Uses(rules.Lifetime)
	k.usesStack = k.usesThread || k.usesLibrary || slices.ContainsFunc([]rules.Field{rules.Function, rules.File, rules.SiteFunction, rules.SiteFile}, set.Uses)
	return k
}

// grouping makes the grouping that reports know.
func (k *categorizer) grouping(name string) *grouping {
	return &grouping{name: name, doc: "category by the rules " + k.set.Name, categories: k,
		id:  func(_ *resolver, o *origin) uint64 { return k.id(o) },
		key: func(r *resolver, id uint64) string { return categoryKey(k.of(r, id)) }}
}

// categoryKey joins the categories of a block into a key.
func categoryKey(list []string) string {
	if len(list) == 0 {
		return rules.Others
	}
	return strings.Join(list, " + ")
}

// id numbers what the rules can tell apart.
func (k *categorizer) id(o *origin) uint64 {
	q := *o
	q.device = 0
	if !k.usesTag {
		q.tag = 0
	}
	if !k.usesCall {
		q.call = 0
	}
	if !k.usesThread {
		q.thread = 0
	}
	if !k.usesStack {
		q.stack, q.pyStack = 0, 0
	}
	if !k.usesModule {
		q.module = 0
	}
	if !k.usesModule && !k.usesName {
		q.category, q.name = 0, 0
	}
	if !k.usesLifetime {
		q.lifetime = lasting
	}
	id, known := k.index[q]
	if !known {
		id = uint64(len(k.origins))
		k.index[q] = id
		k.origins = append(k.origins, q)
	}
	return id
}

// of returns the categories of an identifier. It looks names up, so that it must wait for the end of the dictionary.
func (k *categorizer) of(r *resolver, id uint64) []string {
	if k.usesStack {
		r.stacks.Start()
	}
	if k.found == nil || k.named != r.stacks.Names {
		k.found, k.named = make(map[uint64][]string), r.stacks.Names
		k.matcher = k.set.Matcher()
	}
	list, known := k.found[id]
	if !known {
		list = k.matcher.Match(k.subject(r, &k.origins[id]))
		k.found[id] = list
	}
	return list
}

func (k *categorizer) subject(r *resolver, o *origin) *rules.Subject {
	s := &rules.Subject{Tag: r.tagOf(o.tag), API: o.call.String(), Kind: o.kind.String(), Level: o.account.String()}
	if k.usesName {
		s.Name = labelOf(r.tables, o)
	}
	if k.usesModule {
		s.Module = r.moduleOf(o)
	}
	if k.usesLifetime && r.lifetimes {
		s.Lasts = o.lifetime.String()
	}
	if o.sizeClass > 0 {
		s.Size = k.bounds[o.sizeClass-1]
	}
	if k.usesThread {
		th, _ := r.tables.Thread(o.thread)
		s.Thread = th.Name
	}
	if k.usesLibrary {
		s.Library = r.libraries.Name(r.libraries.Of(o.stack))
	}
	if k.usesStack {
		stack := r.stacks.Of(callstack.Pair{Native: o.stack, Python: o.pyStack})
		for _, f := range stack.All {
			s.Frames = append(s.Frames, r.stacks.RuleFrame(f))
		}
		if stack.Site != nil {
			s.Site = r.stacks.RuleFrame(stack.Site)
		}
	}
	return s
}

// sizeClass numbers the intervals between the boundaries.
func sizeClass(bounds []uint64, size uint64) uint16 {
	if len(bounds) == 0 {
		return 0
	}
	n, found := slices.BinarySearch(bounds, size)
	if found {
		n++
	}
	return uint16(n)
}

// maxSizeClasses bounds the boundaries of all sets together.
const maxSizeClasses = 1<<16 - 1

// sizeBounds are the boundaries of several sets.
func sizeBounds(list []RuleGrouping) []uint64 {
	var bounds []uint64
	for _, g := range list {
		bounds = append(bounds, g.Rules.Boundaries()...)
	}
	slices.Sort(bounds)
	return slices.Compact(bounds)
}

// tagOf returns a tag path, "" without one.
func (r *resolver) tagOf(id trace.StringID) string {
	if id == 0 {
		return ""
	}
	return r.tables.String(id)
}
