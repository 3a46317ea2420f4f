//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"memtrace/cuda"
	"memtrace/trace"
)

// pass and node mirror testdata/oracle/anomaly.py.
type pass struct {
	Thread int32  `json:"thread"`
	Nodes  []node `json:"nodes"`
}

type node struct {
	Sequence uint32         `json:"sequence"`
	Name     string         `json:"name"`
	Stack    []anomalyFrame `json:"stack"` // outermost first
}

// anomalyFrame is a frame as anomaly mode prints it.
type anomalyFrame struct {
	file, function string
	line           int64
}

func (f *anomalyFrame) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&f.file, &f.line, &f.function})
}

// linePlace names a line as briefly as exports may, so that both can be compared.
func linePlace(file string, line int64) string {
	return fmt.Sprintf("%s/%s:%d", filepath.Base(filepath.Dir(file)), filepath.Base(file), line)
}

const moduleCall = "_wrapped_call_impl" // the function of torch with which every call of a module begins

// chain is a call stack as lines, and as far as the innermost call of a module.
type chain struct{ whole, module string }

// chainOf makes one from frames, the outermost first.
func chainOf(places, functions []string) chain {
	var c chain
	c.whole = strings.Join(places, ";")
	for i, f := range slices.Backward(functions) {
		if strings.HasSuffix(f, moduleCall) {
			c.module = strings.Join(places[:i+1], ";")
			break
		}
	}
	return c
}

func (n *node) chain() chain {
	var places, functions []string
	for _, f := range n.Stack {
		places, functions = append(places, linePlace(f.file, f.line)), append(functions, f.function)
	}
	return chainOf(places, functions)
}

// gradientOf separates, in exported stacks, the frames of a forward operator and those of its backward.
const gradientOf = "(gradient of)"

// tiedChains returns the bytes of all allocations of the backward pass by what memtrace reports as the forward
// operator, and the bytes of those with a line of the script in it.
func tiedChains(t *testing.T, path, script string) (tied map[chain]uint64, lined uint64) {
	t.Helper()
	tied = map[chain]uint64{}
	text := memtrace(t, "export", "collapsed", "--full-stacks", "--value", "allocated", "--level", "framework",
		"-o", "-", path)
	for line := range strings.Lines(text) {
		at := strings.LastIndexByte(line, ' ')
		bytes, err := strconv.ParseUint(strings.TrimSpace(line[at+1:]), 10, 64)
		frames := strings.Split(line[:at], ";")
		marker := slices.Index(frames, gradientOf)
		if err != nil || marker < 0 {
			continue
		}
		var places, functions []string
		found := false
		for _, f := range frames[:marker] {
			function, place, ok := strings.Cut(strings.TrimSuffix(f, ")"), " (")
			colon := strings.LastIndexByte(place, ':')
			number, err := strconv.ParseInt(place[colon+1:], 10, 64)
			if !ok || err != nil {
				t.Fatalf("%q is no frame of Python", f)
			}
			places, functions = append(places, linePlace(place[:colon], number)), append(functions, function)
			found = found || filepath.Base(place[:colon]) == script
		}
		tied[chainOf(places, functions)] += bytes
		if found {
			lined += bytes
		}
	}
	return tied, lined
}

// backwardBytes returns how many bytes the backward passes of a trace allocated, in all and by operator; and which
// operators allocated themselves.
func backwardBytes(t *testing.T, path string) (all uint64, byOperator map[uint32]uint64, allocated map[uint32]bool) {
	t.Helper()
	events, _ := readEvents(t, path)
	byOperator, allocated = map[uint32]uint64{}, map[uint32]bool{}
	for _, e := range events {
		switch {
		case e.Level != cuda.LevelFramework || e.Kind != trace.EventAlloc:
		case e.Flags&trace.FlagBackward != 0 || e.PyStack == 0:
			all += e.Size
			byOperator[e.Op] += e.Size
		default:
			allocated[e.Op] = true
		}
	}
	return all, byOperator, allocated
}

// agreement is how many bytes two accounts have under the same keys.
func agreement(a, b map[string]uint64) (same uint64) {
	for key, bytes := range a {
		same += min(bytes, b[key])
	}
	return same
}

// TestBackwardTies: what the backward pass takes is tied to a module and a line of the script, and to the line that
// PyTorch's own anomaly mode names: to the very call stack where the forward operator took memory itself, and near it
// where it made a view, which leaves no trace. A loss that the training loop computes has no module; most models
// compute it themselves.
func TestBackwardTies(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		for _, c := range []struct {
			model
			lossOutside bool
		}{
			{model{"gpt2", []string{"gpt2.py", "--steps", "2", "--loss", "inside"}, false}, false},
			{model{"gpt2-loss-outside", []string{"gpt2.py", "--steps", "2"}, false}, true},
			{model{"transformers-gpt2", []string{"transformer_hf.py", "--model", "gpt2", "--steps", "2"}, true}, false},
			{model{"llama", []string{"transformer_hf.py", "--steps", "2"}, true}, false},
		} {
			t.Run(framework+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				rarely(t, framework != torch27 && c.name != "gpt2" || c.name == "transformers-gpt2")
				if c.name != "gpt2" {
					extended(t)
				}
				r := c.program(t, framework).watchedBy("anomaly.py").record(t)
				compareTies(t, r, c.args[0], c.lossOutside)
			})
		}
	}
}

func compareTies(t *testing.T, r *result, script string, lossOutside bool) {
	t.Helper()
	nodes := map[uint32]node{}
	for _, p := range oracleJSON[[]pass](t, r) {
		for _, n := range p.Nodes {
			nodes[n.Sequence+1] = n
		}
	}
	all, byOperator, allocated := backwardBytes(t, r.trace)
	truth, truthModules := map[string]uint64{}, map[string]uint64{}
	var exact, unknown uint64
	for op, bytes := range byOperator {
		n, ok := nodes[op]
		if !ok {
			unknown += bytes
			continue
		}
		c := n.chain()
		truth[c.whole] += bytes
		truthModules[c.module] += bytes
		if allocated[op] {
			exact += bytes
		}
	}
	tied, lined := tiedChains(t, r.trace, script)
	whole, modules := map[string]uint64{}, map[string]uint64{}
	var moduled uint64
	for c, bytes := range tied {
		whole[c.whole] += bytes
		modules[c.module] += bytes
		if c.module != "" {
			moduled += bytes
		}
	}
	inModules := all
	if lossOutside {
		inModules = 0
		for module, bytes := range truthModules {
			if module != "" {
				inModules += bytes
			}
		}
	}
	sameWhole, sameModules := agreement(truth, whole), agreement(truthModules, modules)
	t.Logf(
		"%d bytes: %d with a module, %d with a line of the script; %d of operators that took memory; anomaly mode says the same stack for %d, the same module call for %d; it does not know %d",
		all, moduled, lined, exact, sameWhole, sameModules, unknown)
	if all == 0 || lined*100 < all*99 || moduled*100 < inModules*99 {
		t.Errorf("of %d bytes %d have a line of the script, and of %d in modules %d have a module", all, lined,
			inModules, moduled)
	}
	if unknown*100 > all {
		t.Errorf("anomaly mode does not know %d of %d bytes", unknown, all)
	}
	if sameWhole < exact {
		t.Errorf("%d bytes are of operators that took memory, %d have the same stack", exact, sameWhole)
	}
	if sameModules*100 < all*90 {
		t.Errorf("%d of %d bytes have the same call of a module", sameModules, all)
	}
}

// TestBackwardCases: Python code as backward, parts that are computed again, gradients of gradients, and two devices at
// once: everything is tied to the function that was its forward. Threads that train on one device, or hand their graphs
// to others, number their operators alike, and so does the thread of the backward pass, where a part that is computed
// again has gradients of its own: each has its own lines, to the byte.
func TestBackwardCases(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, framework := range []string{torch27, torch215} {
		t.Run(framework, func(t *testing.T) {
			t.Parallel()
			p := program{framework: framework, args: []string{"backward_ties.py"},
				env: []string{"NULLCUDA_DEVICES=2"}}
			r := p.record(t)
			var expected map[string]uint64
			if err := json.Unmarshal([]byte(r.stdout), &expected); err != nil || len(expected) < 14 {
				t.Fatalf("%d cases, %v: %s", len(expected), err, r.stdout)
			}
			tied := tiedFunctions(t, r.trace)
			for name, bytes := range expected {
				exact := strings.HasSuffix(name, "_thread") || strings.HasSuffix(name, "_inner")
				if tied[name] < bytes || exact && tied[name] != bytes {
					t.Errorf("%d bytes are tied to %s, its backward took %d", tied[name], name, bytes)
				}
			}
		})
	}
}

// tiedFunctions returns the bytes of the backward pass by the functions that its stacks are the gradient of, by their
// bare names.
func tiedFunctions(t *testing.T, path string) map[string]uint64 {
	t.Helper()
	tied := map[string]uint64{}
	for line := range strings.Lines(memtrace(t, "export", "collapsed", "--value", "allocated", "--level", "framework",
		"-o", "-", path)) {
		at := strings.LastIndexByte(line, ' ')
		bytes, err := strconv.ParseUint(strings.TrimSpace(line[at+1:]), 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		forward, _, found := strings.Cut(line[:at], ";"+gradientOf+";")
		if !found {
			continue
		}
		met := map[string]bool{}
		for f := range strings.SplitSeq(forward, ";") {
			name, _, _ := strings.Cut(f, " (")
			name = name[strings.LastIndexByte(name, '.')+1:]
			if !met[name] {
				met[name] = true
				tied[name] += bytes
			}
		}
	}
	return tied
}
