package profile

import (
	"slices"
	"strings"

	"memtrace/internal/callstack"
	"memtrace/internal/rules"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// RuleGrouping is a grouping whose keys are the categories of a set of rules. In multi-match mode, a combination of
// several categories is a key of its own, "RNN + Embedding", so that the sum of the rows is the total; Categories alone
// counts a block more than once.
type RuleGrouping struct {
	Name  string // a name in Question.Groupings
	Rules *rules.Set
}

// Categorizer returns the categories of origins. Fields that the rules do not use are ignored, and every combination is
// evaluated once.
type Categorizer struct {
	Set     *rules.Set
	matcher *rules.Matcher
	bounds  []uint64 // between size classes

	usesTag, usesCall, usesLibrary, usesStack, usesThread, usesName, usesModule, usesLifetime bool

	index   map[Origin]uint64
	origins []Origin            // by identifier
	found   map[uint64][]string // by identifier; nil value: none
	named   *symbol.Resolver    // the resolver of the cached names, which may be resolved again
}

func NewCategorizer(set *rules.Set, bounds []uint64) *Categorizer {
	k := &Categorizer{Set: set, bounds: bounds, index: make(map[Origin]uint64)}
	k.usesTag, k.usesCall, k.usesLibrary, k.usesThread = set.Uses(rules.Tag), set.Uses(rules.API),
		set.Uses(rules.Library), set.Uses(rules.Phase)
	k.usesName, k.usesModule, k.usesLifetime = set.Uses(rules.Name), set.Uses(rules.Module), set.Uses(rules.Lifetime)
	k.usesStack = k.usesThread || k.usesLibrary ||
		slices.ContainsFunc([]rules.Field{rules.Function, rules.File, rules.SiteFunction, rules.SiteFile}, set.Uses)
	return k
}

// Grouping returns the grouping that reports use.
func (k *Categorizer) Grouping(name string) *Grouping {
	return &Grouping{Name: name, doc: "category by the rules " + k.Set.Name, Categories: k,
		ID:  func(_ *Resolver, o *Origin) uint64 { return k.ID(o) },
		Key: func(r *Resolver, id uint64) string { return CategoryKey(k.Of(r, id)) }}
}

// CategoryKey joins the categories of a block into a key.
func CategoryKey(list []string) string {
	if len(list) == 0 {
		return rules.Others
	}
	return strings.Join(list, " + ")
}

// ID numbers the origins that the rules distinguish.
func (k *Categorizer) ID(o *Origin) uint64 {
	q := *o
	q.Device = 0
	if !k.usesTag {
		q.Tag = 0
	}
	if !k.usesCall {
		q.call = 0
	}
	if !k.usesThread {
		q.Thread = 0
	}
	if !k.usesStack {
		q.Stack, q.PyStack = 0, 0
	}
	if !k.usesModule {
		q.Module = 0
	}
	if !k.usesModule && !k.usesName {
		q.Category, q.Name = 0, 0
	}
	if !k.usesLifetime {
		q.Lifetime = lasting
	}
	id, known := k.index[q]
	if !known {
		id = uint64(len(k.origins))
		k.index[q] = id
		k.origins = append(k.origins, q)
	}
	return id
}

// Of returns the categories of an identifier. It looks names up, and therefore needs the complete dictionary.
func (k *Categorizer) Of(r *Resolver, id uint64) []string {
	if k.usesStack {
		r.Stacks.Start()
	}
	if k.found == nil || k.named != r.Stacks.Names {
		k.found, k.named = make(map[uint64][]string), r.Stacks.Names
		k.matcher = k.Set.Matcher()
	}
	list, known := k.found[id]
	if !known {
		list = k.matcher.Match(k.subject(r, &k.origins[id]))
		k.found[id] = list
	} else if o := &k.origins[id]; k.usesStack {
		r.Stacks.Touch(callstack.Pair{Native: o.Stack, Python: o.PyStack})
	}
	return list
}

func (k *Categorizer) subject(r *Resolver, o *Origin) *rules.Subject {
	s := &rules.Subject{Tag: r.TagOf(o.Tag), API: o.call.String(), Kind: o.kind.String(), Level: o.account.String()}
	if k.usesName {
		s.Name = labelOf(r.Tables, o)
	}
	if k.usesModule {
		s.Module = r.ModuleOf(o)
	}
	if k.usesLifetime && r.Lifetimes {
		s.Lasts = o.Lifetime.String()
	}
	if o.SizeClass > 0 {
		s.Size = k.bounds[o.SizeClass-1]
	}
	if k.usesThread {
		th, _ := r.Tables.Thread(o.Thread)
		s.Thread = th.Name
	}
	if k.usesLibrary {
		s.Library = r.Libraries.Name(r.Libraries.Of(o.Stack))
	}
	if k.usesStack {
		stack := r.Stacks.Of(callstack.Pair{Native: o.Stack, Python: o.PyStack})
		for _, f := range stack.All {
			s.Frames = append(s.Frames, r.Stacks.RuleFrame(f))
		}
		if stack.Site != nil {
			s.Site = r.Stacks.RuleFrame(stack.Site)
		}
	}
	return s
}

// SizeClass numbers the intervals between the boundaries.
func SizeClass(bounds []uint64, size uint64) uint16 {
	if len(bounds) == 0 {
		return 0
	}
	n, found := slices.BinarySearch(bounds, size)
	if found {
		n++
	}
	return uint16(n)
}

// MaxSizeClasses bounds the boundaries of all sets together.
const MaxSizeClasses = 1<<16 - 1

// SizeBounds are the boundaries of several sets.
func SizeBounds(list []RuleGrouping) []uint64 {
	var bounds []uint64
	for _, g := range list {
		bounds = append(bounds, g.Rules.Boundaries()...)
	}
	slices.Sort(bounds)
	return slices.Compact(bounds)
}

// TagOf returns a tag path, "" without one.
func (r *Resolver) TagOf(id trace.StringID) string {
	if id == 0 {
		return ""
	}
	return r.Tables.String(id)
}
