package analyzer

import (
	"memtrace/analyzer/callstack"
	"memtrace/analyzer/report"
)

// stackID is the identifier of groupings by place.
func stackID(_ *resolver, o *origin) uint64 {
	return callstack.Pair{Native: o.stack, Python: o.pyStack}.ID()
}

// placed makes a key from the site of a stack.
func placed(r *resolver, id uint64, text func(j *callstack.Classifier, f *callstack.Frame) string) string {
	stack := r.stacks.Of(callstack.PairOf(id))
	if stack.Site == nil {
		return report.NoStack
	}
	return text(&r.stacks.Classifier, stack.Site)
}

func siteKey(r *resolver, id uint64) string { return r.stacks.Of(callstack.PairOf(id)).Key }

func functionKey(r *resolver, id uint64) string {
	return placed(r, id, (*callstack.Classifier).Function)
}

func fileKey(r *resolver, id uint64) string { return placed(r, id, (*callstack.Classifier).SourceFile) }

func lineKey(r *resolver, id uint64) string {
	return placed(r, id, func(j *callstack.Classifier, f *callstack.Frame) string {
		if line := j.Line(f); line != "" {
			return line
		}
		return j.Site(f)
	})
}
