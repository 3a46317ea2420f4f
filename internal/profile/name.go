package profile

import (
	"regexp"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// labelPrefixes are the prefixes of names of categories that have texts of their own. MXNet's have prefixes of their
// own.
var labelPrefixes = [...]string{trace.CategoryParameter: "parameter:", trace.CategoryBuffer: "buffer:",
	trace.CategoryGradient: "gradient:", trace.CategoryOptimizer: "optimizer_state:"}

var ownPrefix = regexp.MustCompile(
	`^(in_arg|arg_grad|aux_state|optimizer_state|data_entry|forward_features|head_grad|workspace):`)

// labelOf is a block's name as rules see it: "parameter:h.0.weight", "" without one.
func labelOf(t *trace.Tables, o *Origin) string {
	name := t.String(o.Name)
	if o.Category == trace.CategoryNone || int(o.Category) >= len(labelPrefixes) || ownPrefix.MatchString(name) {
		return name
	}
	return labelPrefixes[o.Category] + name
}

func nameID(_ *Resolver, o *Origin) uint64 {
	if o.Category == trace.CategoryFree {
		return 0
	}
	return uint64(o.Category)<<32 | uint64(o.Name)
}

func nameKey(r *Resolver, id uint64) string {
	if category := trace.Category(id >> 32); category != trace.CategoryNone {
		return r.Tables.String(trace.StringID(id)) + " (" + category.String() + ")"
	}
	return report.Unnamed
}
