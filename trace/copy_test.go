package trace

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"memtrace/internal/section"
)

// verbatim leaves everything as it is.
type verbatim struct{}

func (verbatim) Info(_, value string) (string, bool) { return value, true }
func (verbatim) String(s string) string              { return s }
func (verbatim) Module(m Module) Module              { return m }
func (verbatim) Thread(t Thread) Thread              { return t }
func (verbatim) Device(d Device) Device              { return d }
func (verbatim) Code(c Code) Code                    { return c }
func (verbatim) Symbol(s Symbol) (Symbol, bool)      { return s, true }
func (verbatim) OOM(report string) (string, bool)    { return report, true }
func (verbatim) End(e End) End                       { return e }

func copyOf(t testing.TB, file []byte, edit Editor) []byte {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := NewWriter(&out, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := Copy(w, r, edit); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A copy that changes nothing has the same text: events, flags of late ones, ends of blocks, watermarks, dictionary and
// all.
func TestCopyVerbatim(t *testing.T) {
	whole := mixedTrace(t)
	for _, n := range []int{len(whole), len(whole) - 1, len(whole) * 2 / 3, section.HeadSize} {
		file := whole[:n]
		want, _, _ := strings.Cut(dump(t, file), "# damaged")
		if got := dump(t, copyOf(t, file, verbatim{})); got != want {
			t.Errorf("the copy of the first %d bytes differs at %s", n, firstDifference(got, want))
		}
	}
	_, r := readAll(t, copyOf(t, whole, verbatim{}))
	_, original := readAll(t, whole)
	a, b := r.Health(), original.Health()
	if a.Blocks != b.Blocks || a.Events != b.Events || a.LateEvents != b.LateEvents ||
		r.Watermark() != original.Watermark() {
		t.Errorf("health %+v, of the original %+v", a, b)
	}
}

// Symbols from after the end are written before it.
func TestCopyTakesTheEpilogue(t *testing.T) {
	path := writeFile(t, encodeTrace(t, trainingStream(50, 1), 20))
	symbols := someSymbols(3000)
	if err := appendAt(path, symbols); err != nil {
		t.Fatal(err)
	}
	_, r := readAll(t, copyOf(t, readFile(t, path), verbatim{}))
	wantSymbols(t, r.Tables(), symbols)
	if h := r.Health(); h.Sections > 10 {
		t.Errorf("%d sections for %d symbols", h.Sections, len(symbols))
	}
}

func TestCopyLeavesUnknownSectionsOut(t *testing.T) {
	secret := withSection(section.Kind(77), []byte("secret"), 0)[section.HeadSize:]
	var file, without bytes.Buffer
	for out, extra := range map[*bytes.Buffer][]byte{&file: []byte("secret"), &without: nil} {
		w, err := NewWriter(out, WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if extra != nil { // of a later version, which writes it like any other
			err = w.sections.Write(section.Kind(77), extra, false)
		}
		if err := errors.Join(err, w.WriteEvents(trainingStream(50, 1)), w.Close(End{Reason: "exit"})); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Contains(file.Bytes(), secret) {
		t.Fatal("the section is not there")
	}
	if copied := copyOf(t, file.Bytes(), verbatim{}); bytes.Contains(copied, []byte("secret")) ||
		!bytes.Equal(copied, copyOf(t, without.Bytes(), verbatim{})) {
		t.Error("the copy is not that of the trace without the section")
	}
}

// firstDifference returns the lines at which two texts part.
func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d:\n%s\nwant\n%s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("line %d, where one of them ends", min(len(a), len(b)))
}
