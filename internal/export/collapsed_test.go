package export

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"memtrace/analyzer"
	"memtrace/internal/symbol"
)

// readCollapsed parses the format like its original reader: the last word of a line is the value, semicolons separate
// the rest.
func readCollapsed(t *testing.T, text []byte) (stacks map[string]uint64, sum uint64) {
	t.Helper()
	stacks = make(map[string]uint64)
	var previous string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		cut := strings.LastIndexByte(line, ' ')
		n, err := strconv.ParseUint(line[cut+1:], 10, 64)
		if cut < 1 || err != nil || n == 0 {
			t.Fatalf("line %q", line)
		}
		name := line[:cut]
		for frame := range strings.SplitSeq(name, ";") {
			if frame == "" || strings.TrimSpace(frame) != frame {
				t.Errorf("frame %q in %q", frame, line)
			}
		}
		if _, twice := stacks[name]; twice {
			t.Errorf("stack %q stands there twice", name)
		}
		if name < previous && !strings.ContainsAny(name+previous, ";") {
			t.Errorf("%q stands after %q", name, previous)
		}
		stacks[name], previous = n, name
		sum += n
	}
	return stacks, sum
}

func collapse(t *testing.T, set *analyzer.StackSet, o Options) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Collapsed(&out, set, o); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestCollapsedLook(t *testing.T) {
	golden(t, "training.collapsed.txt", collapse(t, trainingSet(), trainingOptions(Peak)))
	o := trainingOptions(Peak)
	o.NoLines = true
	golden(t, "training.nolines.txt", collapse(t, trainingSet(), o))
}

func TestCollapsedSums(t *testing.T) {
	for v := range values {
		for _, noLines := range []bool{false, true} {
			o := trainingOptions(Value(v))
			o.NoLines = noLines
			if _, sum := readCollapsed(t, collapse(t, trainingSet(), o)); sum != o.Value.Sum(trainingSet()) {
				t.Errorf("%s: %d, want %d", o.Value, sum, o.Value.Sum(trainingSet()))
			}
		}
	}
}

// TestCollapsedSigns: no name can break a line or a stack apart.
func TestCollapsedSigns(t *testing.T) {
	frames := stack(py("a;b", "x;y\n.py", 3), native("operator new \t[]; \n", 1), native("tail 17 ", 2), native(" ", 3),
		native("\xff\x00", 4))
	set := &analyzer.StackSet{Rows: []analyzer.StackRow{{Frames: frames, PeakBytes: 9}, {PeakBytes: 4}}}
	stacks, _ := readCollapsed(t, collapse(t, set, Options{}))
	for _, want := range []string{"a,b (x,y .py:3);operator new [],;tail 17;?;?", "[no stack]"} {
		if stacks[want] == 0 {
			t.Errorf("no %q in %v", want, stacks)
		}
	}
}

// TestOrderOfRows: the output does not depend on the order of the rows.
func TestOrderOfRows(t *testing.T) {
	set, turned := trainingSet(), trainingSet()
	slices.Reverse(turned.Rows)
	if o := trainingOptions(Peak); !bytes.Equal(collapse(t, set, o), collapse(t, turned, o)) ||
		!bytes.Equal(flame(t, set, o), flame(t, turned, o)) ||
		!bytes.Equal(scope(t, set, o), scope(t, turned, o)) {
		t.Error("the order of the rows matters")
	}
}

func TestCollapsedMergesEqualNames(t *testing.T) {
	one, other := native("f", 0x10), native("f", 0x20)
	set := &analyzer.StackSet{Rows: []analyzer.StackRow{{Frames: []symbol.Frame{one}, PeakBytes: 1},
		{Frames: []symbol.Frame{other}, PeakBytes: 2}}}
	if got := string(collapse(t, set, Options{})); got != "f 3\n" {
		t.Errorf("%q", got)
	}
}

func TestCollapsedOfNothing(t *testing.T) {
	if got := collapse(t, &analyzer.StackSet{}, Options{}); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestCollapsedOfManyStacks(t *testing.T) {
	set := manyStacks()
	if _, sum := readCollapsed(t, collapse(t, set, Options{})); sum != Peak.Sum(set) {
		t.Errorf("%d, want %d", sum, Peak.Sum(set))
	}
}
