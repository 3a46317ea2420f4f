package export

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
)

var update = flag.Bool("update", false, "rewrite the expected files in testdata")

// golden compares what was written with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g, w := strings.SplitAfter(string(got), "\n"), strings.SplitAfter(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("%s differs (go test -update rewrites it), line %d:\n got: %swant: %s", path, i+1, g[i], w[i])
		}
	}
	if len(g) != len(w) {
		t.Errorf("%s: %d lines, want %d (go test -update rewrites it)", path, len(g), len(w))
	}
}

func flame(t *testing.T, set *analyzer.StackSet, o Options) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := FlameGraph(&out, set, o); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// drawnBox is a box in the file.
type drawnBox struct {
	class, about string
	from, value  uint64
	name         uint64
	x, y, width  float64
	label        string
}

// readFlame reads a picture back, checking that it is well-formed XML.
func readFlame(t *testing.T, svg []byte) []*drawnBox {
	t.Helper()
	var boxes []*drawnBox
	var now *drawnBox
	var text strings.Builder
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return boxes
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			text.Reset()
			a := make(map[string]string)
			for _, attribute := range token.Attr {
				a[attribute.Name.Local] = attribute.Value
			}
			switch {
			case token.Name.Local == "g" && a["data-b"] != "":
				now = &drawnBox{class: a["class"], from: number(t, a["data-o"]), value: number(t, a["data-b"]),
					name: number(t, a["data-n"])}
				boxes = append(boxes, now)
			case token.Name.Local == "rect" && now != nil:
				now.x, now.y, now.width = decimal(t, a["x"]), decimal(t, a["y"]), decimal(t, a["width"])
			}
		case xml.CharData:
			text.Write(token)
		case xml.EndElement:
			switch {
			case now == nil:
			case token.Name.Local == "title":
				now.about = text.String()
			case token.Name.Local == "text":
				now.label = text.String()
			case token.Name.Local == "g":
				now = nil
			}
		}
	}
}

func number(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func decimal(t *testing.T, s string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestFlameGraphLook(t *testing.T) {
	golden(t, "training.svg", flame(t, trainingSet(), trainingOptions(Peak)))
}

// TestFlameGraphSums: the first box is the sum of all stacks; the children of every box are within its bounds and do
// not overlap; a label fits its box.
func TestFlameGraphSums(t *testing.T) {
	for v := range values {
		set := trainingSet()
		o := trainingOptions(Value(v))
		boxes := readFlame(t, flame(t, set, o))
		if boxes[0].class != "all" || boxes[0].value != o.Value.Sum(set) {
			t.Errorf("%s: the whole is %d, want %d", o.Value, boxes[0].value, o.Value.Sum(set))
		}
		for i, b := range boxes {
			if room := (b.width + flameGap - flamePad) / flameChar; b.label != "" &&
				float64(columns(strings.TrimSuffix(b.label, dots))) > room+0.01 {
				t.Errorf("%s: label %q does not fit %.1f pixels", o.Value, b.label, b.width)
			}
			if i == 0 {
				continue
			}
			inside := false
			for _, parent := range boxes {
				inside = inside || parent.y == b.y-flameRow && parent.from <= b.from && b.from+b.value <= parent.from+
					parent.value
			}
			if !inside {
				t.Errorf("%s: no box holds %q", o.Value, b.about)
			}
			for _, other := range boxes[:i] {
				if other.y == b.y && b.from < other.from+other.value && other.from < b.from+b.value {
					t.Errorf("%s: %q and %q overlap", o.Value, b.about, other.about)
				}
			}
		}
	}
}

// TestFlameTreeIsExact: the value of every box is that of its children, of what was too narrow and of the stacks that
// end there.
func TestFlameTreeIsExact(t *testing.T) {
	set := wideSet(3000)
	s := newSampler(set.Rows, shaper(set, false))
	list, sum := s.samples(Peak)
	for _, least := range []uint64{1, leastValue(sum), sum / 10} {
		root := newFlameTree(list, sum, least)
		var check func(b *box, list []sample, depth int)
		check = func(b *box, list []sample, depth int) {
			var whole, ends uint64
			for _, s := range list {
				whole += s.value
				if len(s.frames) == depth {
					ends += s.value
				}
			}
			below := b.small
			for _, c := range b.children {
				below += c.value
				var part []sample
				for _, s := range list {
					if len(s.frames) > depth && s.frames[depth] == c.frame {
						part = append(part, s)
					}
				}
				check(c, part, depth+1)
			}
			if b.value != whole || below+ends != whole {
				t.Fatalf("box of %d: children and the rest make %d, stacks that end here %d; the stacks make %d",
					b.value, below, ends, whole)
			}
		}
		check(root, list, 0)
	}
}

func TestFlameGraphLeavesOutWhatOnlyPassesOn(t *testing.T) {
	frames := stack(py("main", script, 1), py("a", linear, 1), py("b", linear, 2), py("c", linear, 3), native("d", 4))
	set := &analyzer.StackSet{Level: "framework", Rows: []analyzer.StackRow{{Frames: frames, PeakBytes: 100}}}
	folded := readFlame(t, flame(t, set, Options{}))
	if len(folded) != 4 || !strings.Contains(folded[3].about, "called through b, c") {
		t.Errorf("folded: %d boxes", len(folded))
	}
	if full := readFlame(t, flame(t, set, Options{Full: true})); len(full) != 6 {
		t.Errorf("full: %d boxes, want 6", len(full))
	}
	set.Rows = append(set.Rows, analyzer.StackRow{Frames: frames[1:], PeakBytes: 1})
	if boxes := readFlame(t, flame(t, set, Options{})); len(boxes) != 5 {
		t.Errorf("c has memory of its own: %d boxes, want 5", len(boxes))
	}
}

func TestFlameGraphEscapes(t *testing.T) {
	evil := "</title><script>alert(1)</script>]]>&\"'\n\x00\xff\u2028"
	set := &analyzer.StackSet{Process: report.Process{Command: evil}, Level: evil, Moment: evil}
	set.Rows = []analyzer.StackRow{{Frames: stack(py(evil, evil, 1), native(evil, 2)), PeakBytes: 10}}
	svg := flame(t, set, Options{})
	if boxes := readFlame(t, svg); len(boxes) != 3 {
		t.Errorf("%d boxes", len(boxes))
	}
	if n := bytes.Count(svg, []byte("<script>")); n != 1 {
		t.Errorf("%d scripts", n)
	}
	if n := bytes.Count(svg, []byte("]]>")); n != 1 {
		t.Errorf("%d ends of character data", n)
	}
}

func TestFlameGraphOfNothing(t *testing.T) {
	svg := flame(t, &analyzer.StackSet{Level: "driver"}, trainingOptions(Peak))
	if len(readFlame(t, svg)) != 0 || !bytes.Contains(svg, []byte("nothing was allocated")) {
		t.Errorf("%s", svg)
	}
}

func TestFlameGraphStaysSmall(t *testing.T) {
	svg := flame(t, manyStacks(), trainingOptions(Peak))
	if boxes := len(readFlame(t, svg)); boxes > maxBoxes || boxes < 1000 {
		t.Errorf("%d boxes", boxes)
	}
	if len(svg) > 12<<20 {
		t.Errorf("%d bytes", len(svg))
	}
}

// TestFlameScriptHasItsData: every value that the script reads is passed to it, and no other.
func TestFlameScriptHasItsData(t *testing.T) {
	used := make(map[string]bool)
	for _, m := range regexp.MustCompile(`\bMT\.(\w+)`).FindAllStringSubmatch(flameScript, -1) {
		used[m[1]] = true
	}
	svg := flame(t, trainingSet(), trainingOptions(Peak))
	data := svg[bytes.LastIndex(svg, []byte("})("))+3 : bytes.LastIndex(svg, []byte(");"))]
	var given map[string]json.RawMessage
	if err := json.Unmarshal(data, &given); err != nil {
		t.Fatal(err)
	}
	labels := given["names"]
	for name := range used {
		if given[name] == nil {
			t.Errorf("the script reads MT.%s", name)
		}
		delete(given, name)
	}
	for name := range given {
		t.Errorf("the script does not read MT.%s", name)
	}
	var names [][]string
	if err := json.Unmarshal(labels, &names); err != nil {
		t.Fatal(err)
	}
	for _, b := range readFlame(t, svg) {
		if b.name >= uint64(len(names)) || !strings.HasPrefix(b.about, names[b.name][0]) {
			t.Errorf("box %q has name %d of %d", b.about, b.name, len(names))
		}
	}
}
