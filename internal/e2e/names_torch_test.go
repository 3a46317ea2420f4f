//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memtrace/trace"
)

// nameAccount is what testdata/train/names_oracle.py writes at a mark.
type nameAccount struct {
	Blocks  map[string]uint64 `json:"blocks"`
	Tensors []namedTensor     `json:"tensors"`
	Modules map[string]uint64 `json:"modules"`
	Unnamed *uint64           `json:"unnamed"`
}

type namedTensor struct {
	category, name string
	addr, size     uint64
}

func (n *namedTensor) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&n.category, &n.name, &n.addr, &n.size})
}

// runNames runs a script that writes its own account of its names, and returns that.
func runNames(t *testing.T, p program) (*result, map[string]nameAccount) {
	t.Helper()
	p.args = append(slices.Clone(p.args), "names.json")
	r := p.record(t)
	text, err := os.ReadFile(filepath.Join(r.dir, "names.json"))
	if err != nil {
		t.Fatal(err)
	}
	var marks map[string]nameAccount
	if err := json.Unmarshal(text, &marks); err != nil {
		t.Fatal(err)
	}
	if len(marks) == 0 {
		t.Fatal("the program set no mark")
	}
	return r, marks
}

// compareNames compares every mark: each block's name to the byte, and each tensor's and module's name event.
func compareNames(t *testing.T, r *result, marks map[string]nameAccount) {
	t.Helper()
	events, reader := readEvents(t, r.trace)
	said, modules := map[namedTensor]bool{}, map[string]map[uint64]bool{}
	for _, e := range events {
		if e.Kind != trace.EventName {
			continue
		}
		name := reader.Tables().String(e.Name)
		said[namedTensor{e.Category.String(), name, e.Addr, e.Size}] = true
		if e.Category == trace.CategoryModule {
			if modules[name] == nil {
				modules[name] = map[uint64]bool{}
			}
			modules[name][e.Handle] = true
		}
	}
	for _, mark := range slices.Sorted(maps.Keys(marks)) {
		want := marks[mark]
		wrong := 0
		fault := func(format string, arguments ...any) {
			if wrong++; wrong <= 8 {
				t.Errorf("%s: %s", mark, fmt.Sprintf(format, arguments...))
			}
		}
		compareBlocks(t, r, mark, want, fault)
		for _, tensor := range want.Tensors {
			if !said[tensor] {
				fault("nothing says that %d bytes at %#x are %s (%s)", tensor.size, tensor.addr, tensor.name,
					tensor.category)
			}
		}
		for name, id := range want.Modules {
			if !modules[name][id] {
				fault("nothing says that the module at %#x is %s", id, name)
			}
		}
		if wrong > 8 {
			t.Errorf("%s: %d differences in all", mark, wrong)
		}
	}
}

func compareBlocks(t *testing.T, r *result, mark string, want nameAccount, fault func(string, ...any)) {
	t.Helper()
	got := map[string]uint64{}
	for _, g := range jsonReport(t, r.trace, "--by", "name", "--at", "mark:"+mark).At.Groups {
		if g.By == "name" && g.Level == "framework" {
			for _, row := range g.Rows {
				got[row.Key] = row.LiveBytes
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want.Blocks)) {
		if got[key] != want.Blocks[key] {
			fault("%q has %d bytes in the trace, %d in the program", key, got[key], want.Blocks[key])
		}
	}
	if want.Unnamed == nil {
		return
	}
	if got["(unnamed)"] != *want.Unnamed {
		fault("%d bytes without a name, %d in the program", got["(unnamed)"], *want.Unnamed)
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want.Blocks[key]; !ok && key != "(unnamed)" && got[key] != 0 {
			fault("%q (%d bytes) is no name of the program's", key, got[key])
		}
	}
}

// Parameters, buffers, gradients and everything an optimizer keeps are called what PyTorch calls them, for every
// optimizer and every kind of it.
func TestNamesOptimizers(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		t.Run(framework, func(t *testing.T) {
			t.Parallel()
			r, marks := runNames(t, program{framework: framework, args: []string{"names_optimizers.py"}})
			if len(marks) < 29 {
				t.Errorf("only %d kinds of optimizers", len(marks))
			}
			compareNames(t, r, marks)
		})
	}
}

// Modules in every shape, models that change while they train, tensors without a module, several in one piece of
// memory; optimizers in wrappers, quantised and sharded states, tensors made of tensors; models wrapped for several
// processes.
func TestNamesShapes(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		for _, script := range []string{"names_modules.py", "names_wrapped.py", "names_distributed.py",
			"names_many.py"} {
			t.Run(framework+"/"+script, func(t *testing.T) {
				t.Parallel()
				rarely(t, framework != torch27 && script != "names_modules.py")
				if script != "names_modules.py" {
					extended(t)
				}
				r, marks := runNames(t, program{framework: framework, args: []string{script}})
				compareNames(t, r, marks)
			})
		}
	}
}

// A model that never trains has its names at the end, when memory runs out, and, in a function that returns before
// either, from a look while it is in use.
func TestNamesInference(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		for _, kind := range []string{"end", "gone", "oom"} {
			t.Run(framework+"/"+kind, func(t *testing.T) {
				t.Parallel()
				rarely(t, framework != torch27 && kind != "gone")
				if kind != "gone" {
					extended(t)
				}
				r, marks := runNames(t, program{framework: framework, args: []string{"names_inference.py", kind}})
				compareNames(t, r, marks)
			})
		}
	}
}

// A program that ends before the library's thread has requested names has them all the same. It was without any for a
// tenth of a second after its first call. So has one that was scanned while its model moved to the device: such scans
// were taken for those of training, after which scans are rare. One that was scanned while copy.deepcopy ran was called
// what that calls it, y, and one of an object's attributes what a function did that had it in a variable.
func TestNamesShort(t *testing.T) {
	t.Parallel()
	parameters := []string{"model.0.bias (parameter)", "model.0.weight (parameter)", "model.1.bias (parameter)",
		"model.1.weight (parameter)"}
	trained := []string{"model.1.weight (gradient)", "momentum_buffer:model.0.weight (optimizer)"}
	for kind, more := range map[string][]string{"model": nil, "step": trained, "moving": trained,
		"copying": {"average.0.weight (parameter)"}, "held": {"trainer.net.weight (parameter)"}} {
		for _, run := range []combination{{torch27, "3.9"}, {torch27, ""}, {torch215, ""}} {
			t.Run(run.String()+"/"+kind, func(t *testing.T) {
				t.Parallel()
				if kind != "step" && kind != "copying" {
					extended(t)
				}
				rarely(t, run.framework != torch27 && kind != "step" && kind != "moving")
				r := program{framework: run.framework, python: run.python,
					args: []string{"names_short.py", kind}}.record(t)
				events, reader := readEvents(t, r.trace)
				said := map[string]bool{}
				for _, e := range events {
					if e.Kind == trace.EventName && e.Addr != 0 && e.Size != 0 {
						said[fmt.Sprintf("%s (%s)", reader.Tables().String(e.Name), e.Category)] = true
					}
				}
				for _, name := range slices.Concat(parameters, more) {
					if !said[name] {
						t.Errorf("nothing is called %s", name)
					}
				}
				if info := reader.Info(); info["adapter.torch"] != "on" || info["adapter.torch.trouble"] != "" {
					t.Errorf("the adapter is %q, trouble %q", info["adapter.torch"], info["adapter.torch.trouble"])
				}
			})
		}
	}
}

// The compiler counts the same graphs, breaks and recompilations with and without the library, and the names of what is
// compiled are right.
func TestNamesCompiled(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, framework := range []string{torch27, torch215} {
		t.Run(framework, func(t *testing.T) {
			t.Parallel()
			rarely(t, framework != torch27)
			plain := program{framework: framework, args: []string{"names_compile.py"}, plain: true}.record(t)
			r, marks := runNames(t, program{framework: framework, args: []string{"names_compile.py"}})
			if r.stdout != plain.stdout || !strings.Contains(plain.stdout, "unique_graphs") {
				t.Errorf("the compiler counted\n%s\nwithout the library\n%s", r.stdout, plain.stdout)
			}
			compareNames(t, r, marks)
		})
	}
}

// A program in which every access that the library's script could make by mistake would be seen does the same with and
// without the library, and has its names.
func TestNamesBreaking(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, framework := range []string{torch27, torch215} {
		t.Run(framework, func(t *testing.T) {
			t.Parallel()
			rarely(t, framework != torch27)
			p := program{framework: framework, args: []string{"names_breaking.py"}}
			traced := p.record(t)
			p.plain = true
			plain := p.record(t)
			if traced.stdout != plain.stdout || traced.stderr != plain.stderr {
				t.Errorf("with the library\n%s%s\nwithout\n%s%s", traced.stdout, traced.stderr, plain.stdout,
					plain.stderr)
			}
			wanted := map[string]bool{"touchy.inner.weight": false, "meta.bias": false, "plain.weight": false,
				"momentum_buffer:touchy.inner.bias": false, "many.2999.weight": false, "short.0.weight": false}
			events, reader := readEvents(t, traced.trace)
			for _, e := range events {
				if e.Kind == trace.EventName && e.Addr != 0 {
					if name := reader.Tables().String(e.Name); name != "" {
						if _, ok := wanted[name]; ok {
							wanted[name] = true
						}
					}
				}
			}
			for name, found := range wanted {
				if !found {
					t.Errorf("nothing is called %s", name)
				}
			}
			if trouble := reader.Info()["adapter.torch.trouble"]; trouble != "" && trouble != "0" {
				t.Errorf("%s exceptions in the script", trouble)
			}
		})
	}
}
