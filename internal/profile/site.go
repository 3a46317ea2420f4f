package profile

import (
	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
)

// StackID is the identifier of groupings by place.
func StackID(_ *Resolver, o *Origin) uint64 {
	return callstack.Pair{Native: o.Stack, Python: o.PyStack}.ID()
}

// placed makes a key from the site of a stack.
func placed(r *Resolver, id uint64, text func(j *callstack.Classifier, f *callstack.Frame) string) string {
	stack := r.Stacks.Of(callstack.PairOf(id))
	if stack.Site == nil || stack.Key == report.BeforeStart {
		return stack.Key
	}
	return text(&r.Stacks.Classifier, stack.Site)
}

func SiteKey(r *Resolver, id uint64) string { return r.Stacks.Of(callstack.PairOf(id)).Key }

func functionKey(r *Resolver, id uint64) string {
	return placed(r, id, (*callstack.Classifier).Function)
}

func fileKey(r *Resolver, id uint64) string { return placed(r, id, (*callstack.Classifier).SourceFile) }

func lineKey(r *Resolver, id uint64) string {
	return placed(r, id, func(j *callstack.Classifier, f *callstack.Frame) string {
		if line := j.Line(f); line != "" {
			return line
		}
		return j.Site(f)
	})
}
