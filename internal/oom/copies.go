package oom

import (
	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/profile"
	"memtrace/internal/rules"
	"memtrace/trace"
)

// mostCopies is how many times a place may have the bytes of all parameters, and leastCopied how many of these tell a
// copy from what is as large by chance.
const (
	mostCopies  = 8
	leastCopied = 1 << 20
)

// ParameterCopies finds the place that had exactly as many bytes at the peak as all parameters, once or several times,
// with or without the buffers of their modules, in blocks of no category that outlast a pass: best weights, a moving
// average, or a second model that does not run. nil if there is none. place names the place of a Python stack.
func ParameterCopies(d *profile.AccountStats, r *profile.Resolver, place func(trace.StackID) string,
) *report.ParameterCopies {
	var parameters, buffers uint64
	for i := range d.Cells.List {
		switch v := &d.Cells.List[i]; v.Category {
		case trace.CategoryParameter:
			parameters += v.Peak(d.Total.Epoch)
		case trace.CategoryBuffer:
			buffers += v.Peak(d.Total.Epoch)
		}
	}
	if parameters < leastCopied {
		return nil
	}
	places := make(map[string]uint64)
	for i := range d.Cells.List {
		v := &d.Cells.List[i]
		bytes := v.Peak(d.Total.Epoch)
		if bytes > 0 && v.Category == trace.CategoryNone && v.PyStack != 0 && v.Lifetime != profile.Temporary &&
			phaseCategory(r.PhaseOf(callstack.PairOf(profile.StackID(nil, &v.Origin)), v.Thread)) == rules.Others {
			places[place(v.PyStack)] += bytes
		}
	}
	var found *report.ParameterCopies
	for site, bytes := range places {
		for _, whole := range []uint64{parameters, parameters + buffers} {
			count := bytes / whole
			if bytes%whole == 0 && count > 0 && count <= mostCopies && (found == nil || bytes > found.Bytes ||
				bytes == found.Bytes && site < found.Site) {
				found = &report.ParameterCopies{Site: site, Bytes: bytes, Count: count}
			}
		}
	}
	return found
}
