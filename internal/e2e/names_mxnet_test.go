//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/profile"
	"memtrace/internal/rules/rulefile"
	"memtrace/trace"
)

// named is MXNet's names for its memory in a trace, at the mark "stats" or, without one, at the end.
type named struct {
	bytes map[string]uint64 // by name: requested bytes, over all devices
	steps int
	freed int // names that went before
}

var (
	stringLine = regexp.MustCompile(`(?m)^string id=(\d+) value=(".*")$`)
	adapterOn  = regexp.MustCompile(`(?m)^adapter\.mxnet +on$`)
	eventLine  = regexp.MustCompile(`(?m)^(name|mark) seq=.*$`)
	eventField = regexp.MustCompile(` (addr|size|category|name)=(\S+)`)
)

// block is what one address holds.
type block struct {
	name string
	size uint64
}

func namesOf(t *testing.T, path string) named {
	t.Helper()
	if info := memtrace(t, "info", path); !adapterOn.MatchString(info) ||
		strings.Contains(info, "adapter.mxnet.trouble") {
		t.Errorf("the adapter is not on, or had trouble:\n%s", info)
	}
	text := memtrace(t, "dump", path)
	names := map[string]string{}
	for _, m := range stringLine.FindAllStringSubmatch(text, -1) {
		value, err := strconv.Unquote(m[2])
		if err != nil {
			t.Fatal(err)
		}
		names[m[1]] = value
	}
	n, at, marked := named{bytes: map[string]uint64{}}, map[string]block{}, false
	keep := func() {
		for _, b := range at {
			n.bytes[b.name] += b.size
		}
	}
	for _, line := range eventLine.FindAllString(text, -1) {
		fields := map[string]string{}
		for _, f := range eventField.FindAllStringSubmatch(line, -1) {
			fields[f[1]] = f[2]
		}
		name := names[fields["name"]]
		switch {
		case strings.HasPrefix(line, "mark"):
			if name == "stats" {
				marked = true
				keep()
			}
		case fields["category"] == "step":
			n.steps++
		case fields["category"] == "free":
			delete(at, fields["addr"])
			n.freed++
		case fields["addr"] != "":
			size, err := strconv.ParseUint(fields["size"], 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			at[fields["addr"]] = block{name, size}
		}
	}
	if !marked {
		keep()
	}
	return n
}

// sizes are those that the program worked out from shapes and types, over all devices.
func sizesOf(t *testing.T, r *result) map[string]uint64 {
	t.Helper()
	sizes := map[string]uint64{}
	for _, device := range r.counters(t) {
		for name := range device {
			sizes[name] += number(t, device, name)
		}
	}
	if len(sizes) == 0 {
		t.Fatal("the program has no parameters")
	}
	return sizes
}

// compare checks that names and sizes are the same, to the byte, and that the states of each parameter add up. It
// returns the kinds of states that there are.
func (n named) compare(t *testing.T, sizes map[string]uint64) []string {
	t.Helper()
	got, want, kinds := map[string]uint64{}, map[string]uint64{}, map[string]bool{}
	for name, size := range n.bytes {
		switch kind, rest, _ := strings.Cut(name, ":"); kind {
		case "optimizer_state":
			at := strings.LastIndexByte(rest, ':')
			kinds[rest[:at]] = true
			got["state:"+rest[at+1:]] += size
		case "in_arg", "arg_grad", "aux_state", "data_entry":
			got[name] = size
		default:
			t.Errorf("a name of no known kind: %s", name)
		}
	}
	for name, size := range sizes {
		if rest, isState := strings.CutPrefix(name, "state:"); isState {
			_, parameter, _ := strings.Cut(rest, ":")
			name = "state:" + parameter
		}
		want[name] += size
	}
	for name := range want {
		equal(t, name, got[name], want[name])
	}
	for name := range got {
		if _, known := want[name]; !known {
			t.Errorf("%s has %d bytes, and the program knows nothing of it", name, got[name])
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// TestMXNetNames: parameters, their gradients and auxiliary states have the names that MXNet gives them and the bytes
// that shapes and types make, with eager and with compiled graphs. What MXNet's pool rounds them to is a number of its
// own, and the preset of the GPU memory profiler puts the very same blocks under Parameters.
func TestMXNetNames(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"mxnet_bert.py", "mxnet_resnet.py"} {
		for _, graphs := range []string{"no", "yes", "static"} {
			t.Run(script+"/"+graphs, func(t *testing.T) {
				t.Parallel()
				r := program{framework: mxnet, args: []string{script, "--steps", "4", "--hybridize", graphs,
					"--memory-stats", "STATS"}}.record(t)
				compareAccounts(t, r)
				kinds := namesOf(t, r.trace).compare(t, sizesOf(t, r))
				if !slices.Equal(kinds, []string{"mean", "variance"}) {
					t.Errorf("Adam's states are %v", kinds)
				}
				checkBlocks(t, r.trace, sizesOf(t, r))
			})
		}
	}
}

// trained is the summary of a trace with all its figures of training, by a preset.
func trained(t *testing.T, path, preset string) *report.Summary {
	t.Helper()
	set, err := rulefile.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	var sources [2]*trace.Reader
	for i := range sources {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if sources[i], err = trace.NewReader(file, info.Size()); err != nil {
			t.Fatal(err)
		}
	}
	s, err := analyzer.Summarize(sources[0], analyzer.Options{Question: analyzer.Question{Groupings: []string{preset}},
		RuleSets: []profile.RuleGrouping{{Name: preset, Rules: set}}, Training: true, Ahead: sources[1]})
	if err != nil {
		t.Fatal(err)
	}
	if s.Training == nil || len(s.Training.Parameters) == 0 {
		t.Fatal("the summary has no parameters")
	}
	return s
}

// mxnetRounds is what MXNet's pool makes of a request: pages, and nothing less than one.
func mxnetRounds(bytes uint64) uint64 {
	const page = 4096
	return (bytes + page - 1) / page * page
}

func checkBlocks(t *testing.T, path string, sizes map[string]uint64) {
	t.Helper()
	s := trained(t, path, "mxnet-data-structures")
	var blocks, bytes uint64
	for _, p := range s.Training.Parameters {
		kind := "in_arg:"
		if p.Category == "buffer" {
			kind = "aux_state:"
		}
		equal(t, p.Name, p.Bytes, sizes[kind+p.Name])
		equal(t, "gradient of "+p.Name, p.Gradient, sizes["arg_grad:"+p.Name])
		equal(t, "blocks of "+p.Name, p.BlockBytes, mxnetRounds(p.Bytes))
		equal(t, "blocks of the gradient of "+p.Name, p.GradBlock, mxnetRounds(p.Gradient))
		if p.Category == "parameter" {
			blocks += p.BlockBytes
		}
		blocks += p.GradBlock
		bytes += p.Bytes
		for i, state := range p.States {
			equal(t, fmt.Sprintf("%s of %s", state.Name, p.Name), state.Bytes,
				sizes[fmt.Sprintf("state:%d:%s", i, p.Name)])
			equal(t, fmt.Sprintf("blocks of %s of %s", state.Name, p.Name), state.BlockBytes, mxnetRounds(state.Bytes))
			blocks += state.BlockBytes
		}
	}
	if bytes == 0 || blocks <= bytes {
		t.Errorf("parameters have %d bytes, and %d in blocks with all that belongs to them", bytes, blocks)
	}
	for _, row := range s.Categories[0].Rows {
		if row.Key == "Parameters" {
			equal(t, "Parameters by the preset", row.Bytes, blocks)
			return
		}
	}
	t.Error("nothing under Parameters")
}

// TestMXNetOptimizers: the states of one optimizer of each kind have the names of MXNet's source.
func TestMXNetOptimizers(t *testing.T) {
	t.Parallel()
	had := map[string]bool{} // states that an earlier one has as well
	for _, o := range []struct {
		name    string
		options []string
		kinds   []string
	}{
		{"sgd", nil, nil},
		{"sgd", []string{"momentum=0.9"}, []string{"momentum"}},
		{"sgd", []string{"momentum=0.9", "multi_precision=true"}, []string{"momentum", "weight_master_copy"}},
		{"adam", []string{"multi_precision=true"}, []string{"mean", "variance", "weight_master_copy"}},
		{"nag", []string{"momentum=0.9"}, []string{"momentum"}},
		{"signum", []string{"momentum=0.9"}, []string{"momentum"}},
		{"ftml", nil, []string{"d_0", "v_0", "z_0"}},
		{"lars", []string{"momentum=0.9"}, []string{"momentum"}},
		{"lamb", nil, []string{"mean", "variance"}},
		{"dcasgd", nil, []string{"previous_weight"}},
		{"sgld", nil, nil},
		{"adagrad", nil, []string{"history"}},
		{"rmsprop", nil, []string{"n"}},
		{"rmsprop", []string{"centered=true"}, []string{"delta", "g", "n"}},
		{"adadelta", nil, []string{"accumulated_delta", "accumulated_g"}},
		{"ftrl", nil, []string{"n", "z"}},
		{"adamax", nil, []string{"mean", "variance"}},
		{"nadam", nil, []string{"mean", "variance"}},
	} {
		kinds := strings.Join(o.kinds, " ")
		again := had[kinds]
		had[kinds] = true
		t.Run(strings.Join(append([]string{o.name}, o.options...), ","), func(t *testing.T) {
			t.Parallel()
			rarely(t, again)
			args := []string{"mxnet_resnet.py", "--steps", "2", "--optimizer", o.name, "--memory-stats", "STATS"}
			for _, option := range o.options {
				args = append(args, "--option", option)
				if option == "multi_precision=true" {
					args = append(args, "--dtype", "float16")
				}
			}
			r := program{framework: mxnet, args: args}.record(t)
			if kinds := namesOf(t, r.trace).compare(t, sizesOf(t, r)); !slices.Equal(kinds, o.kinds) {
				t.Errorf("states %v, want %v", kinds, o.kinds)
			}
		})
	}
}

// TestMXNetDevices: with two devices each has its own of everything, under the same names, whether or not the key-value
// store updates.
func TestMXNetDevices(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"0", "1"} {
		t.Run("MXNET_UPDATE_ON_KVSTORE="+store, func(t *testing.T) {
			t.Parallel()
			r := program{framework: mxnet, args: []string{"mxnet_resnet.py", "--steps", "3", "--devices", "2",
				"--memory-stats", "STATS"},
				env: []string{"NULLCUDA_DEVICES=2", "MXNET_UPDATE_ON_KVSTORE=" + store}}.record(t)
			namesOf(t, r.trace).compare(t, sizesOf(t, r))
		})
	}
}

// TestMXNetModule: what the Module API binds, its inputs and outputs among it, and the state of an updater that the
// program calls itself. Each step is recorded once.
func TestMXNetModule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args  []string
		kinds []string
	}{
		{nil, []string{"history", "momentum"}},
		{[]string{"--devices", "2"}, []string{"history"}}, // the store's are in the host's memory
		{[]string{"--devices", "2", "--kvstore", "device"}, []string{"history", "momentum"}},
	} {
		t.Run(strings.Join(c.args, ","), func(t *testing.T) {
			t.Parallel()
			const steps = 5
			r := program{framework: mxnet,
				args: append([]string{"mxnet_module.py", "--steps", fmt.Sprint(steps), "--memory-stats", "STATS"},
					c.args...), env: []string{"NULLCUDA_DEVICES=2"}}.record(t)
			n := namesOf(t, r.trace)
			if kinds := n.compare(t, sizesOf(t, r)); !slices.Equal(kinds, c.kinds) {
				t.Errorf("states are %v, want %v", kinds, c.kinds)
			}
			equal(t, "steps of a module and of an updater", uint64(n.steps), 2*steps)
		})
	}
}

// TestMXNetSparse: of a gradient that has only some rows, the rows and their numbers are named, wherever a step puts
// them.
func TestMXNetSparse(t *testing.T) {
	t.Parallel()
	for _, steps := range []string{"3", "60"} {
		r := program{framework: mxnet, args: []string{"mxnet_sparse.py", "--steps", steps, "--memory-stats",
			"STATS"}}.record(t)
		namesOf(t, r.trace).compare(t, sizesOf(t, r))
	}
}

// TestMXNetWorkers: processes that feed a model have nothing to name, and get on without the adapter that they inherit;
// the model's names are what they are without them.
func TestMXNetWorkers(t *testing.T) {
	t.Parallel()
	r := program{framework: mxnet, args: []string{"mxnet_resnet.py", "--steps", "6", "--workers", "2", "--memory-stats",
		"STATS"}}.record(t)
	n := namesOf(t, r.trace)
	n.compare(t, sizesOf(t, r))
	equal(t, "steps", uint64(n.steps), 6)
	if r.stderr != "" {
		t.Errorf("it says %q", r.stderr)
	}
}

// TestMXNetInference: without an optimizer nothing steps; what is there when the interpreter ends has its name all the
// same.
func TestMXNetInference(t *testing.T) {
	t.Parallel()
	r := program{framework: mxnet, args: []string{"mxnet_inference.py", "STATS"}}.record(t)
	if kinds := namesOf(t, r.trace).compare(t, sizesOf(t, r)); len(kinds) != 0 {
		t.Errorf("states %v without an optimizer", kinds)
	}
}

// TestMXNetReplaced: names go with what they were given to. The pool keeps the memory, in which nothing has a name
// until it is something again.
func TestMXNetReplaced(t *testing.T) {
	t.Parallel()
	r := program{framework: mxnet, args: []string{"mxnet_replaced.py", "--steps", "5", "--memory-stats", "STATS"},
		env: []string{"NULLCUDA_DEVICES=2"}}.record(t)
	n := namesOf(t, r.trace)
	n.compare(t, sizesOf(t, r))
	if n.freed == 0 {
		t.Error("no name went")
	}
}

// TestMXNetUnchanged: a program that inspects everything that the adapter could have touched sees the same as without
// it.
func TestMXNetUnchanged(t *testing.T) {
	t.Parallel()
	var texts [2]string
	for i, adapters := range []string{"mxnet", "none"} {
		r := program{framework: mxnet, args: []string{"mxnet_unchanged.py"},
			env: []string{"MEMTRACE_ADAPTERS=" + adapters}}.record(t)
		texts[i] = regexp.MustCompile(`0x[0-9a-f]+`).ReplaceAllString(r.stdout+r.stderr, "0x")
		if i == 0 && namesOf(t, r.trace).steps == 0 {
			t.Error("the adapter saw no step")
		}
		if _, err := os.Stat(r.trace); err != nil {
			t.Fatal(err)
		}
	}
	if texts[0] != texts[1] {
		t.Errorf("with the adapter:\n%s\nwithout:\n%s", texts[0], texts[1])
	}
}
