package cause

import (
	"testing"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

func TestNoteAdapters(t *testing.T) {
	for _, c := range []struct {
		info trace.Info
		want string
	}{
		{nil, ""},
		{trace.Info{"adapter.torch": "on", "adapters": "off: no", "python.stacks": "off: no"}, ""},
		{trace.Info{"adapter.torch": "on", "adapter.torch.trouble": "0"}, ""},
		{trace.Info{"adapter.torch": "on", "adapter.torch.trouble": "many"}, ""},
		{trace.Info{"adapter.torch": "off: the script failed"}, "PyTorch's memory has no names: the script failed."},
		{trace.Info{"adapter.mxnet": "off: a", "adapter.torch": "off: b"},
			"MXNet's memory has no names: a. PyTorch's memory has no names: b."},
		{trace.Info{"adapter.torch": "on", "adapter.torch.backward": "on"}, ""},
		{trace.Info{"adapter.torch": "on", "adapter.torch.backward": "off: d"},
			"What PyTorch's backward pass takes is not tied to its forward pass: d."},
		{trace.Info{"adapter.jax": "off: c"}, "JAX's memory has no names: c."},
		{trace.Info{"adapter.torch": "on", "adapter.torch.trouble": "1"},
			"Some of PyTorch's memory may lack its name: 1 time it could not be asked."},
		{trace.Info{"adapter.later": "on", "adapter.later.trouble": "1200"},
			"Some of later's memory may lack its name: 1200 times it could not be asked."},
	} {
		if got := noteAdapters(&report.Summary{}, c.info); got != c.want {
			t.Errorf("of %v is said %q, want %q", c.info, got, c.want)
		}
	}
}
