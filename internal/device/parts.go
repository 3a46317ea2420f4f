package device

import (
	"strings"

	"memtrace/trace"
)

// parts are the optional records of PyTorch's allocator: the key in the trace's facts, and the displayed name.
var parts = []struct{ key, name string }{
	{"adapter.torch.streams", "streams of blocks"},
	{"adapter.torch.pools", "private pools, emptyCache and memory fractions"},
	{"adapter.torch.waits", "blocks that wait for other streams"},
	{"adapter.torch.settings", "settings made at run time"},
	{"adapter.torch.requested", "requested sizes"},
}

// NotRecorded lists the missing parts of a trace, with reasons.
func NotRecorded(info trace.Info) []string {
	list := []string{}
	var old []string
	for _, part := range parts {
		state, known := info[part.key]
		switch why, off := strings.CutPrefix(state, "off: "); {
		case !known && part.key != "adapter.torch.requested": // earlier versions recorded it without this fact
			old = append(old, part.name)
		case off:
			list = append(list, part.name+": "+why)
		}
	}
	if len(old) > 0 {
		list = append(list, strings.Join(old, ", ")+
			": the trace does not have them; it was recorded by an earlier version of memtrace, or imported")
	}
	return list
}
