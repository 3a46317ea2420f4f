package export

import (
	"bytes"
	"encoding/json"
	"os"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"memtrace/analyzer"
)

func scope(t *testing.T, set *analyzer.StackSet, o Options) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Speedscope(&out, []*analyzer.StackSet{set}, o); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// speedscopeFile is the part of a file that the tests read.
type speedscopeFile struct {
	Shared struct {
		Frames []speedscopeFrame `json:"frames"`
	} `json:"shared"`
	Profiles []struct {
		Name     string     `json:"name"`
		Unit     string     `json:"unit"`
		EndValue uint64     `json:"endValue"`
		Samples  [][]uint64 `json:"samples"`
		Weights  []uint64   `json:"weights"`
	} `json:"profiles"`
}

// speedscopeRules is speedscope's own schema, compiled.
var speedscopeRules = sync.OnceValues(func() (*jsonschema.Schema, error) {
	text, err := os.ReadFile("testdata/speedscope-file-format-schema.json")
	if err != nil {
		return nil, err
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("speedscope.json", schema); err != nil {
		return nil, err
	}
	return compiler.Compile("speedscope.json")
})

// readSpeedscope checks a file against the schema and reads it.
func readSpeedscope(t *testing.T, data []byte) *speedscopeFile {
	t.Helper()
	rules, err := speedscopeRules()
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := rules.Validate(value); err != nil {
		t.Fatalf("the schema refuses the file: %v", err)
	}
	broken := value.(map[string]any)
	delete(broken, "shared")
	if rules.Validate(broken) == nil {
		t.Fatal("the schema takes anything")
	}
	var file speedscopeFile
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return &file
}

func TestSpeedscopeSums(t *testing.T) {
	framework, driver := trainingSet(), wideSet(100)
	for v := range values {
		var out bytes.Buffer
		if err := Speedscope(&out, []*analyzer.StackSet{framework, driver}, trainingOptions(Value(v))); err != nil {
			t.Fatal(err)
		}
		file := readSpeedscope(t, out.Bytes())
		if len(file.Profiles) != 2*len(values) {
			t.Fatalf("%d profiles", len(file.Profiles))
		}
		for i, p := range file.Profiles {
			set := []*analyzer.StackSet{framework, driver}[i/len(values)]
			value := valuesFrom(Value(v))[i%len(values)]
			var sum uint64
			for _, w := range p.Weights {
				sum += w
			}
			if sum != value.Sum(set) || p.EndValue != sum || len(p.Samples) != len(p.Weights) {
				t.Errorf("%s: %d, want %d; end %d", p.Name, sum, value.Sum(set), p.EndValue)
			}
			if (p.Unit == "bytes") == (value == Count) {
				t.Errorf("%s: unit %s", p.Name, p.Unit)
			}
			for _, s := range p.Samples {
				for _, f := range s {
					if f >= uint64(len(file.Shared.Frames)) {
						t.Fatalf("%s: frame %d of %d", p.Name, f, len(file.Shared.Frames))
					}
				}
			}
		}
		if outermost := file.Shared.Frames[file.Profiles[0].Samples[0][0]]; v == int(Peak) &&
			outermost.Name != "<module> (exp/train.py:120)" {
			t.Errorf("the first sample begins with %+v", outermost)
		}
	}
}

func TestSpeedscopeEscapes(t *testing.T) {
	set := &analyzer.StackSet{Rows: []analyzer.StackRow{{Frames: stack(py("\"\\\n</script>\xff", "a\"b", 1)),
		PeakBytes: 1}}}
	if file := readSpeedscope(t, scope(t, set, Options{})); file.Shared.Frames[0].Name !=
		"\"\\\n</script>\ufffd (a\"b:1)" {
		t.Errorf("%q", file.Shared.Frames[0].Name)
	}
}

func TestSpeedscopeOfNothing(t *testing.T) {
	file := readSpeedscope(t, scope(t, &analyzer.StackSet{}, Options{}))
	if len(file.Profiles) != len(values) || len(file.Profiles[0].Samples) != 0 {
		t.Errorf("%+v", file)
	}
}

// TestSpeedscopeOfManyStacks skips the schema, which is slow.
func TestSpeedscopeOfManyStacks(t *testing.T) {
	set := manyStacks()
	data := scope(t, set, Options{})
	var file speedscopeFile
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if file.Profiles[0].EndValue != Peak.Sum(set) {
		t.Errorf("%d, want %d", file.Profiles[0].EndValue, Peak.Sum(set))
	}
	if len(data) > 1300*manyRows {
		t.Errorf("%d bytes", len(data))
	}
}
