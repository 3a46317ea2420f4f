package importer

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// TestJAX imports what JAX 0.10 wrote on a processor, and profiles of several devices, of others, damaged and cut.
func TestJAX(t *testing.T) {
	function := &profile.Function{ID: 1, Name: "make", Filename: "/a/train.py"}
	location := &profile.Location{ID: 1, Line: []profile.Line{{Function: function, Line: 7}}}
	part := func(count, space int64, labels ...string) *profile.Sample {
		s := &profile.Sample{Location: []*profile.Location{location}, Value: []int64{count, space},
			Label: map[string][]string{}}
		for i := 0; i < len(labels); i += 2 {
			s.Label[labels[i]] = labels[i+1 : i+2]
		}
		return s
	}
	of := func(samples ...*profile.Sample) []byte {
		p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "allocations", Unit: "count"},
			{Type: "space", Unit: "bytes"}}, Sample: samples, Location: []*profile.Location{location},
			Function: []*profile.Function{function}}
		var b bytes.Buffer
		if err := p.WriteUncompressed(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	real := sample(t, "jax.prof")
	heap := bytes.Replace(of(part(1, 8)), []byte("space"), []byte("alloc"), 1)
	for _, c := range []struct {
		name  string
		file  []byte
		want  map[int16]uint64
		words string // what is missing, or the error if there is no memory
	}{
		{"as written", real, map[int16]uint64{0: 7 << 20, -1: 7 << 20}, "each counts as an equal part"},
		{"two devices", of(part(1, 512, "kind", "buffer", "device", "gpu:0"), part(3, 1000, "device", "gpu:1")),
			map[int16]uint64{0: 512, 1: 1000, -1: 1512}, "equal part"},
		{"one number", of(part(1, 512, "device", "gpu:0"), part(1, 8, "device", "cpu:0")),
			map[int16]uint64{0: 512, 1: 8, -1: 520}, "no times"},
		{"no bytes", of(part(1, 0, "kind", "executable"), part(1, 8, "device", "gpu:2")),
			map[int16]uint64{2: 8, -1: 8}, "no times"},
		{"negative", of(part(1, -8)), nil, "sample 1: a number or a size is negative"},
		{"bytes of nothing", of(part(1, 8), part(0, 8)), nil, "sample 2: bytes of no block"},
		{"too many", of(part(1<<40, 1<<41)), nil, "more blocks than"},
		{"too large", of(part(1, 1<<51)), nil, "more than any device has"},
		{"nothing", of(part(1, 0)), nil, "holds no memory"},
		{"another profile", heap, nil, "none of JAX's"},
		{"cut", real[:len(real)-100], nil, "damaged or cut"},
		{"other bytes", []byte("\n\nhello"), nil, "damaged or cut"},
	} {
		events, _, result, err := run(t, Find("jax"), c.file)
		if c.want == nil {
			if err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%s: %v, want %q", c.name, err, c.words)
			}
			continue
		}
		if got := peaks(t, events); err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
		says(t, result, c.words)
	}
}
