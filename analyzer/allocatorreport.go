package analyzer

import (
	"strings"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// allocatorParts are what may be recorded of PyTorch's allocator beside its blocks: the key in the trace's facts, and
// what readers call it.
var allocatorParts = []struct{ key, name string }{
	{"adapter.torch.streams", "streams of blocks"},
	{"adapter.torch.pools", "private pools, emptyCache and memory fractions"},
	{"adapter.torch.waits", "blocks that wait for other streams"},
	{"adapter.torch.settings", "settings made at run time"},
	{"adapter.torch.requested", "requested sizes"},
}

// allocatorReport is what the run's allocator was told; nil where PyTorch took no part and nobody asked how much is
// free.
func (c *collector) allocatorReport(info trace.Info, s *report.Summary) *report.Allocator {
	v := c.allocator.Value(c.details[heap.AccountFramework].Total.Epoch, c.calledBy)
	blocks := !s.Framework.Empty() && s.Versions["torch"] != ""
	if !blocks && len(v.Asked) == 0 {
		return nil
	}
	if blocks {
		v.StreamCount, v.PoolCount = c.resolver.Places.Counts()
		v.StreamCount++ // the default one
		v.NotRecorded = notRecorded(info)
	}
	return v
}

// notRecorded says what a trace lacks, and why.
func notRecorded(info trace.Info) []string {
	list := []string{}
	var old []string
	for _, part := range allocatorParts {
		state, known := info[part.key]
		switch why, off := strings.CutPrefix(state, "off: "); {
		case !known && part.key != "adapter.torch.requested": // which earlier versions recorded without saying so
			old = append(old, part.name)
		case off:
			list = append(list, part.name+": "+why)
		}
	}
	if len(old) > 0 {
		list = append(list, strings.Join(old, ", ")+": the trace does not have them; it was recorded by an earlier version of memtrace, or imported")
	}
	return list
}

// calledBy names the place in the program and the library that a call came from.
func (c *collector) calledBy(native, python trace.StackID) (place, library string) {
	o := profile.Origin{Stack: native, PyStack: c.links.Stack(&trace.Event{Stack: native, PyStack: python})}
	if native == 0 && python == 0 {
		return "", ""
	}
	return profile.SiteKey(&c.resolver, profile.StackID(&c.resolver, &o)), c.resolver.Libraries.Name(c.resolver.Libraries.Of(native))
}
