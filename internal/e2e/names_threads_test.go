//go:build e2e

package e2e

import (
	"strconv"
	"strings"
	"testing"

	"memtrace/trace"
)

// A scan reads other threads' tensors while these train, and PyTorch changes much of that without the interpreter's
// lock. A program of six threads died of a gradient that was freed twice: a scan had read it in the middle of another
// thread's backward pass. So did one whose TorchScript module put new tensors in its buffers' place. Here everything is
// scanned hundreds of times while threads replace whatever a scan reads; it ends well, and the threads' tensors were
// seen.
func TestNamesThreads(t *testing.T) {
	t.Parallel()
	extended(t)
	// of the thread that looks, and of those that train without an optimizer
	own := []string{"step SGD", "parameter weight", "module watched", "parameter watched.weight"}
	model := append([]string{"module model.layers.0", "parameter model.layers.0.weight"}, own...)
	for _, run := range []struct {
		combination
		only string
		want []string
	}{
		{combination{torch27, "3.9"}, "", model},
		{combination{torch27, "3.12"}, "", model},
		{combination{torch215, ""}, "", model},
		{combination{torch27, ""}, "scripted", append([]string{"module model", "parameter model.weight"}, own...)},
	} {
		t.Run(run.String()+"/"+run.only, func(t *testing.T) {
			t.Parallel()
			seen := map[string]bool{}
			seeds := 1
			if reaches(nightly) {
				seeds = 2
			}
			for seed := 1; seed <= seeds; seed++ {
				p := program{framework: run.framework, python: run.python,
					args: []string{"names_threads.py", "--looks", "200", "--seed", strconv.Itoa(seed),
						"--only", run.only}}
				r := p.record(t)
				events, reader := readEvents(t, r.trace)
				if info := reader.Info(); info["adapter.torch"] != "on" || info["adapter.torch.trouble"] != "" {
					t.Errorf("seed %d: the adapter is %q, trouble %q", seed, info["adapter.torch"],
						info["adapter.torch.trouble"])
				}
				for _, e := range events {
					if e.Kind == trace.EventName {
						// several threads' models have one name
						name, _, _ := strings.Cut(reader.Tables().String(e.Name), "#")
						seen[e.Category.String()+" "+name] = true
					}
				}
			}
			for _, want := range run.want {
				if !seen[want] {
					t.Errorf("no look said %q", want)
				}
			}
		})
	}
}
