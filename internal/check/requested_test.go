package check

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"memtrace/internal/render"
	"memtrace/internal/render/layout"
)

// TestUnknownRequests: a single block of which PyTorch did not report the request made every gate on requested bytes an
// error. A limit counts such a block at its size, which is the most that was requested; a comparison passes where it
// holds whatever was requested, fails where it cannot hold, and says where that cannot be told.
func TestUnknownRequests(t *testing.T) {
	some := story{kv: 100, rank: -1, unasked: 8}
	for gate, says := range map[string]string{
		"max requested=168MiB": "",
		"max requested=167MiB": "requested memory is 168.0 MiB, 1.00 MiB over the limit of 167.0 MiB: by tag kv_cache (100.0 MiB)",
		"max requested=1MiB":   "8.00 MiB of it is in blocks of which the request is not known; they count at their size.",
	} {
		r := checked(t, gate, some.trace(t))
		if want := map[bool]string{true: Passed, false: Failed}[says == ""]; r.Status != want ||
			!strings.Contains(r.Text, says) || !strings.Contains(r.Note, "8.00 MiB of it is in blocks") {
			t.Errorf("%s: %+v", gate, r)
		}
	}
	if r := checked(t, "max requested=160MiB", server.trace(t)); r.Status != Passed || r.Note != "" {
		t.Errorf("all is known: %+v", r)
	}
	for _, test := range []struct {
		base, now    story
		tolerance    float64
		status, says string
	}{
		{some, some, 6, Passed, ""}, // 168 MiB at most, 160 MiB at least, which is 5% less
		{some, some, 4, Broken, "cannot be compared: of 8.00 MiB here and 8.00 MiB in the baseline the request is not known"},
		{server, some, 6, Passed, ""},
		{server, some, 4, Broken, "cannot be compared: of 8.00 MiB here and 0 B in the baseline"},
		{some, server, 0, Passed, ""},
		{some, story{kv: 120, rank: -1, unasked: 8}, 2, Failed, "8.00 MiB of it is in blocks"},
	} {
		g, err := ParseCompare("requested", Amount{test.tolerance, Percent})
		if err != nil {
			t.Fatal(err)
		}
		made, err := NewBaseline("base.json", []*Trace{test.base.trace(t)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := made.JSON()
		if err != nil {
			t.Fatal(err)
		}
		b, err := ParseBaseline("base.json", text)
		if err != nil {
			t.Fatal(err)
		}
		r := (&Plan{Gates: []Gate{g}, Baseline: b}).Check([]*Trace{test.now.trace(t)}).Results[0]
		if r.Status != test.status || !strings.Contains(r.Text, test.says) {
			t.Errorf("%d to %d MiB, %v%%: %s, %q; want %s, %q", test.base.kv, test.now.kv, test.tolerance, r.Status,
				r.Text, test.status, test.says)
		}
	}
}

// TestNotesAreShown: what limits the figure of a gate that passed is in every form that has passes.
func TestNotesAreShown(t *testing.T) {
	g, err := ParseMax("requested=1GiB")
	if err != nil {
		t.Fatal(err)
	}
	o := (&Plan{Gates: []Gate{g}}).Check([]*Trace{story{kv: 100, rank: -1, unasked: 8}.trace(t)})
	for name, write := range map[string]func(io.Writer) error{
		"text":     func(w io.Writer) error { return Text(w, o, layout.Options{}) },
		"markdown": func(w io.Writer) error { return Markdown(w, o) },
		"junit":    func(w io.Writer) error { return JUnit(w, o) },
		"json":     func(w io.Writer) error { return render.WriteJSON(w, o) },
	} {
		text := strings.Join(strings.Fields(written(t, write)), " ")
		if !strings.Contains(text, "8.00 MiB of it is in blocks of which the request is not known") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if !json.Valid([]byte(written(t, func(w io.Writer) error { return SARIF(w, o, "/src") }))) {
		t.Error("SARIF: not JSON")
	}
}
