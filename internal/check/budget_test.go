package check

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// budgetSchema compiles docs/memtrace.schema.json.
func budgetSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile("../../docs/memtrace.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("memtrace.schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("memtrace.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

const wholeBudget = `#:schema docs/memtrace.schema.json
# for every run
assert = ["no-finding=warning"]
tolerance = "2%"

[run.train]
baseline = "ci/train.json"
compare = ["peak", "category:Optimizer state"]
assert = ["no-driver-alloc-after=step:3"] # the cache is warm then

[run.train.max]
peak = "10 GiB"
"category:Optimizer state" = "4GiB"
"module:model.layers.*" = "1.5 GiB"
growth = "1MiB/step"
rank-spread = "5%"
pinned = 1073741824

[run.serve]
max = { peak = "60GiB", "tag:kv_cache" = "40GiB" }
assert = ["released-after=mark:sleep>=90%"]
`

// TestBudget: the file in the documentation's form has what it says, and errors name the line.
func TestBudget(t *testing.T) {
	b, err := ParseBudget("ci/memtrace.toml", []byte(wholeBudget))
	if err != nil {
		t.Fatal(err)
	}
	const choose = "has the runs serve, train; choose one with --run"
	if _, err := b.Pick("", "--run"); err == nil || !strings.Contains(err.Error(), choose) {
		t.Error(err)
	}
	if _, err := b.Pick("trian", "--run"); err == nil || !strings.Contains(err.Error(), "did you mean train?") {
		t.Error(err)
	}
	run, err := b.Pick("train", "--run")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, g := range slices.Concat(run.Gates, run.Compare) {
		names = append(names, g.name()+" "+g.Limit.String())
	}
	want := []string{"peak 10.0 GiB", "category:Optimizer state 4.00 GiB", "module:model.layers.* 1.50 GiB",
		"pinned 1.00 GiB", "growth 1.00 MiB/step", "rank-spread 5%", "no-finding=warning 0 B",
		"no-driver-alloc-after=step:3 0 B", "peak +2% 2%", "category:Optimizer state +2% 2%"}
	if !slices.Equal(names, want) || run.Baseline != "ci/ci/train.json" {
		t.Errorf("%q, baseline %s", names, run.Baseline)
	}
	one, err := ParseBudget("b.toml", []byte("max.peak = '1GiB'"))
	if err != nil || len(one.Runs) != 1 {
		t.Fatal(err)
	}
	if _, err := one.Pick("x", "--run"); err == nil || !strings.Contains(err.Error(), "no [run.NAME] tables") {
		t.Error(err)
	}
}

// TestBudgetSchema: the schema and the parser accept and refuse the same files.
func TestBudgetSchema(t *testing.T) {
	schema := budgetSchema(t)
	for _, test := range []struct{ text, says string }{
		{wholeBudget, ""},
		{"max.peak = 5", ""},
		{"max.peak = '0'", ""},
		{"max.growth = '0/s'", ""},
		{"", ""},
		{"at = 'mark:loaded'\nfrom = 'step:3'\nto = 'exit'\n", ""},
		{"at = 'peak'\n[run.a]\nat = '1.5s'\n[run.b]\nat = 'oom:2'\nfrom = 'iteration:1'\n", ""},
		{"max.peak = 5\nat = 'pake'\n", "b.toml:2:1: at: "},
		{"[run.a]\nfrom = 'peak'\n", "b.toml:2:1: "},
		{"[run.a]\nto = 'stop:1'\n", "b.toml:2:1: to: "},
		{"at = 5\n", "b.toml:1:1: at is a number; write a text, such as \"peak\""},
		{"[run.a]\n[run.b.max]\npeak = '1T'\n", ""},
		{"[run.a.max]\npaek = '1GiB'\n", `b.toml:2:1: unknown gate "paek"; did you mean peak?`},
		{"[max]\npeak = '1GiB'\nreserved = '1GiB'\n", "b.toml:3:1: reserved memory is not compared"},
		{"# peak\n[max]\npeak = '1 lb'\n", `b.toml:3:1: peak: "1 lb" is not a size`},
		{"[max]\npeak = 1.5\n", "b.toml:2:1: peak: write the limit as a text"},
		{"[max]\npeak = true\n", "b.toml:2:1: peak: write the limit"},
		{"[max]\nrank-spread = '5GiB'\n", "b.toml:2:1: rank-spread: \"5GiB\" is not a percentage"},
		{"[max]\nrank-spread = 5\n", "is not a percentage"},
		{"[max]\ngrowth = '1MiB/epoch'\n", "per step or per second"},
		{"[max]\ntag = '1GiB'\n", "tag needs a name"},
		{"tolerence = '1%'\n", `b.toml:1:1: unknown key "tolerence"; did you mean tolerance?`},
		{"[run.a]\nmaximum = 1\n", "unknown key"},
		{"tolerance = '1'\n", "b.toml:1:1: tolerance: \"1\" is not a percentage"},
		{"assert = ['no-findings=warning']\n", "b.toml:1:11: unknown condition"},
		{"assert = 'no-finding=warning'\n", "b.toml:1:1: assert is a text; write a list of texts, such as [\"no-finding=warning\"]"},
		{"assert = ['no-finding=alarm', 5]\n", "b.toml:1:1: assert has other values than texts; write a list of texts"},
		{"assert = 2026-01-01\n", "b.toml:1:1: assert is a date; write a list"},
		{"max = '10GiB'\n", "b.toml:1:1: max is a text; write a table of limits, such as max.peak = \"10GiB\""},
		{"[[run]]\nat = 'peak'\n", "b.toml:1:3: run is a list; write a table for each run, such as [run.train]"},
		{"[run]\ntrain = true\n", "b.toml:2:1: run.train is true or false; write a table for each run"},
		{"[run.''.max]\npeak = 5\n", "b.toml:1:6: a run needs a name"},
		{"max = { peak = 5, paek = 6 }\n", `b.toml:1:19: unknown gate "paek"; did you mean peak?`},
		{"[run.a.max]\npeak = '1GiB'\n[run.b.max]\n  peak = 'x'\n", `b.toml:4:3: peak: "x" is not a size`},
		{"assert = [\n 'no-finding=alarm',\n 'x=y']\n", "b.toml:3:2: unknown condition"},
		{"[run.a]\nassert = ['x=y'] # no-finding\n", "b.toml:2:11: unknown condition"},
		{"peak = '1GiB'\n", `b.toml:1:1: unknown key "peak"; limits are in the table max, as max.peak`},
		{"'tag:kv' = '1GiB'\n", `b.toml:1:1: unknown key "tag:kv"; limits are in the table max, as max."tag:kv"`},
		{"[run.a]\nrun = 5\n", `b.toml:2:1: unknown key "run"`},
		{"\ufeffmax.peak = 5\n", ""},
		{"\ufeffmax.peak = 'x'\n", `b.toml:1:5: peak: "x" is not a size`},
		{"compare = ['growth']\nbaseline = 'b.json'\n", "b.toml:1:12: growth is not compared"},
		{"run = 5\n", "b.toml:1:1: run is a number; write a table for each run"},
		{"baseline = 5\n", "b.toml:1:1: baseline is a number; write the name of a file"},
		{"compare = ['peak']\n", ""},
	} {
		_, err := ParseBudget("b.toml", []byte(test.text))
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v, want %q", test.text, err, test.says)
		}
		var values map[string]any
		if toml.Unmarshal([]byte(test.text), &values) != nil {
			continue
		}
		text, _ := json.Marshal(values)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != (test.says == "") {
			t.Errorf("%q: the schema says %v, the parser %q", test.text, err, test.says)
		}
	}
	for text, says := range map[string]string{
		"[max]\npeak = 10GiB\n":            `b.toml:2:10: a value with a unit needs quotes, such as "10GiB"`,
		"tolerance = 2%\n":                 `a value with a unit needs quotes`,
		"[max]\ntag:kv_cache = \"1GiB\"\n": `b.toml:2:4: a key with a colon needs quotes, such as "tag:kv_cache" = "4GiB"`,
	} {
		if _, err := ParseBudget("b.toml", []byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	for _, wrong := range []string{"max = [", "[max]\npeak='1'\npeak='2'", "\x00", "max.peak = '1GiB'\nmax = 1"} {
		if _, err := ParseBudget("b.toml", []byte(wrong)); err == nil || !strings.HasPrefix(err.Error(), "b.toml:") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := LoadBudget("gone.toml"); err == nil {
		t.Error("a budget that is not there")
	}
}

// TestSchemaHasEverySubject: each subject and condition is in the schema.
func TestSchemaHasEverySubject(t *testing.T) {
	text, err := os.ReadFile("../../docs/memtrace.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range subjectKinds {
		if !strings.Contains(string(text), `"`+k.name+`"`) && !strings.Contains(string(text), k.name+"|") &&
			!strings.Contains(string(text), "|"+k.name+")") {
			t.Errorf("the schema has no %s", k.name)
		}
	}
	for _, name := range AssertNames() {
		if !strings.Contains(string(text), strings.TrimSuffix(name, "=")) {
			t.Errorf("the schema has no %s", name)
		}
	}
}

// FuzzParse: no text of a gate or a budget panics.
func FuzzParse(f *testing.F) {
	for _, text := range []string{wholeBudget, "peak=1GiB", "tag:a=1", "released-after=mark:x..step:1>=90%", "peak>1%",
		"{\"schema\":\"memtrace.baseline/1\",\"runs\":[{}]}"} {
		f.Add(text)
	}
	server := server.trace(f)
	f.Fuzz(func(t *testing.T, text string) {
		var gates []Gate
		for _, parse := range []func(string) (Gate, error){ParseMax, ParseAssert, ParseFailOn,
			func(text string) (Gate, error) { return ParseCompare(text, Amount{2, Percent}) }} {
			if g, err := parse(text); err == nil {
				gates = append(gates, g)
			}
		}
		if b, err := ParseBudget("b.toml", []byte(text)); err == nil {
			for _, run := range b.Runs {
				gates = append(gates, run.Gates...)
			}
		}
		plan := Plan{Gates: gates}
		plan.Baseline, _ = ParseBaseline("b.json", []byte(text))
		plan.Check([]*Trace{server})
		plan.Baseline = nil
		plan.Check([]*Trace{server})
	})
}
