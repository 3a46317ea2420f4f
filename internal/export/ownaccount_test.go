package export

import (
	"bytes"
	"compress/gzip"
	"reflect"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// jaxProfile is a profile as JAX makes it, of buffers with a stack each, innermost frame first.
type jaxBuffer struct {
	kind, device string
	bytes        int64
	stack        []profile.Line
}

func pyFrame(name, file string, line int64) profile.Line {
	return profile.Line{Function: &profile.Function{Name: name, Filename: file}, Line: line}
}

func jaxProfile(t *testing.T, buffers ...jaxBuffer) string {
	t.Helper()
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "allocations", Unit: "count"},
		{Type: "space", Unit: "bytes"}}}
	for _, b := range buffers {
		s := &profile.Sample{Value: []int64{1, b.bytes}, Label: map[string][]string{"kind": {b.kind},
			"device": {b.device}}}
		for _, line := range b.stack {
			line.Function.ID = uint64(len(p.Function) + 1)
			p.Function = append(p.Function, line.Function)
			l := &profile.Location{ID: uint64(len(p.Location) + 1), Line: []profile.Line{line}}
			p.Location = append(p.Location, l)
			s.Location = append(s.Location, l)
		}
		p.Sample = append(p.Sample, s)
	}
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestOwnAccounts(t *testing.T) {
	const inside = "/v/lib/python3.11/site-packages/jax/_src/lax/lax.py"
	packed := jaxProfile(t,
		jaxBuffer{"buffer", "cuda:1", 8, []profile.Line{pyFrame("full", inside, 3),
			pyFrame("init", "/home/me/train/model.py", 12), pyFrame("<module>", "/home/me/train/main.py", 40)}},
		jaxBuffer{"buffer", "cuda:0", 100, []profile.Line{pyFrame("full", inside, 3),
			pyFrame("<module>", "/home/me/train/main.py", 40)}},
		jaxBuffer{"buffer", "cuda:0", 30, []profile.Line{pyFrame("full", inside, 3)}},
		jaxBuffer{"buffer", "cuda:0", 200, []profile.Line{pyFrame("zeros", inside, 9),
			pyFrame("<module>", "/home/me/train/main.py", 40)}},
		jaxBuffer{"buffer", "cuda:0", 5, nil},
		jaxBuffer{"executable", "cuda:0", 4096, []profile.Line{pyFrame("compile", inside, 1)}})
	got, err := OwnAccounts(trace.Info{"account.jax": packed})
	want := []report.OwnAccount{
		{Framework: "jax", Device: "cuda:0", Bytes: 335, Count: 4,
			Sites: []report.OwnSite{{Site: "train/main.py:40 <module>", Bytes: 300, Count: 2},
				{Site: "full", Bytes: 30, Count: 1}, {Site: "(unknown)", Bytes: 5, Count: 1}}},
		{Framework: "jax", Device: "cuda:1", Bytes: 8, Count: 1,
			Sites: []report.OwnSite{{Site: "train/model.py:12 init", Bytes: 8, Count: 1}}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := OwnAccounts(trace.Info{"process.exe": "python"}); got != nil || err != nil {
		t.Errorf("without one: %v, %v", got, err)
	}
}

// TestOwnAccountsRefused: a trace may be damaged, or made to hurt.
func TestOwnAccountsRefused(t *testing.T) {
	packed := func(data []byte) string {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	whole := jaxProfile(t, jaxBuffer{"buffer", "cuda:0", 1, nil})
	other := &profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu", Unit: "ns"}}}
	var cpu bytes.Buffer
	if err := other.Write(&cpu); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ account, want string }{
		"no gzip":         {"plain text", "gzip"},
		"cut":             {whole[:len(whole)-9], "EOF"},
		"no profile":      {packed([]byte("\xff\xff\xff")), "memory profile"},
		"too large":       {packed(make([]byte, accountLimit+1)), "unpacks to more than"},
		"another profile": {cpu.String(), "no allocations"},
	} {
		if got, err := OwnAccounts(trace.Info{"account.jax": test.account}); err == nil ||
			!strings.Contains(err.Error(), test.want) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
