package trace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A library that was opened in the place of another one has addresses of its own; the file's text has those of the
// program.
func TestReusedAddresses(t *testing.T) {
	const text = `trace version=1
module id=1 start=0x1000 end=0x2000 base=0x1000 path="/lib/a.so"
module id=2 start=0x5000 end=0x6000 base=0x4000 path="/lib/c.so"
stack id=3 frames=0x1100,0x5100
module id=4 start=0x1000 end=0x1800 base=0x800 path="/lib/b.so"
stack id=5 frames=0x1100,0x1801,0x5100
module id=6 start=0x1000 end=0x2000 base=0x1000 path="/lib/a.so"
stack id=7 frames=0x1900
module id=8 start=0x1000 end=0x2000 base=0x1000 path="/lib/a.so"
stack id=9 frames=0x1900
`
	file := encode(t, text)
	_, reader := readAll(t, file)
	tables := reader.Tables()
	name := func(pc uint64) string {
		m, ok := tables.ModuleAt(pc - 1)
		if !ok {
			return "none"
		}
		return fmt.Sprintf("%s+%#x", m.Path, pc-m.Base)
	}
	for _, c := range []struct {
		stack StackID
		names []string
		raw   []uint64
	}{
		{3, []string{"/lib/a.so+0x100", "/lib/c.so+0x1100"}, []uint64{0x1100, 0x5100}},
		{5, []string{"/lib/b.so+0x900", "/lib/a.so+0x801", "/lib/c.so+0x1100"}, []uint64{0x1100, 0x1801, 0x5100}},
		{7, []string{"/lib/a.so+0x900"}, []uint64{0x1900}},
		{9, []string{"/lib/a.so+0x900"}, []uint64{0x1900}},
	} {
		var names []string
		var raw []uint64
		for _, pc := range tables.Stack(c.stack) {
			names, raw = append(names, name(pc)), append(raw, tables.RawAddress(pc))
		}
		if !slices.Equal(names, c.names) {
			t.Errorf("stack %d: %q, want %q", c.stack, names, c.names)
		}
		if !slices.Equal(raw, c.raw) || !slices.Equal(tables.rawStack(c.stack), c.raw) {
			t.Errorf("stack %d: raw addresses %x, want %x", c.stack, raw, c.raw)
		}
	}
	if first, third := tables.Stack(3)[0], tables.Stack(5)[0]; first == third {
		t.Errorf("the same address %#x for two libraries", first)
	}
	if a, b := tables.Stack(7)[0], tables.Stack(9)[0]; a != b {
		t.Errorf("the same library again has other addresses: %#x and %#x", a, b)
	}
	if again := dump(t, file); !strings.Contains(again, "stack id=5 frames=0x1100,0x1801,0x5100") {
		t.Errorf("text has other addresses than the file:\n%s", again)
	}
}
