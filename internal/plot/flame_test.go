package plot

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// stacks is a flame graph of hostile names.
func stacks() *Flame {
	return &Flame{Title: "</text><script>", Note: "\x1b[31m", Sum: 100, Depth: 3,
		Legend: []FrameOwner{{"user", "your code"}, {"native", "compiled libraries"}}, Boxes: []FlameBox{
			{0, 0, 100, []string{"all"}, "100 B", ""},
			{1, 0, 60, []string{"train.py:1 main <&>", "train.py:1"}, "60 B", "user"},
			{2, 0, 59, []string{"at::empty"}, "59 B", "native"},
			{1, 60, 40, []string{strings.Repeat("long ", 100), "short"}, "40 B", "native"}}}
}

func TestFlame(t *testing.T) {
	c, err := Make(KindFlame, []Run{{Name: "a", Flame: stacks()}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range Formats {
		first := picture(t, c, format)
		if !bytes.Equal(first, picture(t, c, format)) {
			t.Errorf("%s: bytes differ", format)
		}
		if format == "svg" {
			wellFormed(t, first)
			for _, want := range []string{"train.py:1 main &lt;&amp;&gt;  60 B", ">short  40 B<", "your code"} {
				if !bytes.Contains(first, []byte(want)) {
					t.Errorf("no %q in the picture", want)
				}
			}
		}
	}
	want := []string{"2", "all;train.py:1 main <&>;at::empty", "59"}
	if rows := flameRows(stacks()); len(rows) != 5 || !slices.Equal(rows[3], want) {
		t.Errorf("rows %q", rows)
	}
	none := &Flame{Sum: 5, Depth: 2, Boxes: []FlameBox{{0, 0, 5, []string{"all"}, "", ""},
		{1, 0, 5, []string{"[no stack]"}, "", "other"}}}
	if _, err := Make(KindFlame, []Run{{Name: "a", Flame: none}}, Options{}); err == nil ||
		err.Error() != "flamegraph cannot be drawn: no block has a call stack" {
		t.Errorf("no stacks: %v", err)
	}
}
