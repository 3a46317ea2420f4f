package export

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"memtrace/analyzer"
	"memtrace/internal/render/layout"
)

//go:embed flamegraph.css
var flameStyle string

//go:embed flamegraph.js
var flameScript string

// Measures of the picture, in pixels.
const (
	flameWidth  = 1200
	flameMargin = 10
	flameInner  = flameWidth - 2*flameMargin
	flameTop    = 96 // where the boxes begin
	flameRow    = 18
	flameGap    = 1    // between boxes
	flameBase   = 12.5 // of a label, below the top of its box
	flamePad    = 6    // of a label, left and right together
	flameChar   = 6.75 // width of a character; monospaced fonts of 11 px take 6.6
	flameLeast  = 0.3  // narrower boxes are not drawn
)

// FlameGraph writes a picture of the call stacks, outermost callers above: the width of a box is the value allocated
// below it. It is self-contained; where scripts may run, a click zooms in and a field searches.
func FlameGraph(w io.Writer, set *analyzer.StackSet, o Options) error {
	frames, root := flameTree(set, o)
	p := &flamePicture{out: bufio.NewWriter(w), o: &o, sum: root.value, frames: frames, names: make(map[int32]int)}
	p.draw(root, set)
	if p.err == nil {
		p.err = p.out.Flush()
	}
	if p.err != nil {
		return fmt.Errorf("write the flame graph: %w", p.err)
	}
	return nil
}

// flameHint explains the picture where no script does.
const flameHint = "The width of a box is what was allocated in it and in what it called, which is drawn below it."

// leastValue is the smallest value that is wide enough to be drawn.
func leastValue(sum uint64) uint64 { return uint64(float64(sum)*flameLeast/flameInner) + 1 }

// flamePicture writes the SVG. out keeps its first error.
type flamePicture struct {
	out    *bufio.Writer
	o      *Options
	sum    uint64
	frames []frame
	names  map[int32]int // indices in labels, by frame
	labels [][]string    // what a box can be called, the longest first
	err    error
}

func (p *flamePicture) draw(root *box, set *analyzer.StackSet) {
	height := flameTop + root.depth()*flameRow + flameMargin
	p.print(`<svg xmlns="http://www.w3.org/2000/svg" class="mt-flame" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n",
		flameWidth, height, flameWidth, height)
	headline, subtitle := p.titles(set)
	p.print("<title>%s</title>\n<style>\n%s</style>\n", escape(headline+", "+command(set)), flameStyle)
	p.print(`<rect class="bg" width="%d" height="%d"/>`+"\n", flameWidth, height)
	p.print(`<text class="head" x="%d" y="27">%s</text>`+"\n", flameMargin, escape(clipMiddle(headline, 110)))
	p.print(`<text class="sub" x="%d" y="47">%s</text>`+"\n", flameMargin, escape(clipMiddle(subtitle, 160)))
	p.legend(root)
	p.print(`<text class="info" x="%d" y="87">%s</text>`+"\n", flameMargin, flameHint)
	p.print(`<g class="boxes">` + "\n")
	if p.sum > 0 {
		p.box(root, 0, 0)
	}
	p.print("</g>\n")
	if p.sum > 0 {
		p.script()
	}
	p.print("</svg>\n")
}

// titles returns the counted value and its sum, and the process.
func (p *flamePicture) titles(set *analyzer.StackSet) (headline, subtitle string) {
	headline, subtitle = levelName(set)+" "+p.o.Value.Words(set)+": ", command(set)
	if !set.Health.Complete {
		subtitle = layout.Health(set.Health, set.LostRecords) + " · " + subtitle
	}
	if len(set.Filter) > 0 {
		subtitle += " · only " + strings.Join(set.Filter, ", ")
	}
	if p.sum == 0 {
		return headline + "nothing was allocated", subtitle
	}
	return headline + p.o.Value.Text(p.sum), subtitle
}

// boxClasses are the classes of the style sheet by origin, and their labels in the legend.
var boxClasses = [...]struct{ class, label string }{
	ofUser:    {"user", "your code"},
	ofPackage: {"package", "Python packages"},
	ofNative:  {"native", "compiled libraries"},
	ofOther:   {"other", "other"},
}

// legend explains the colours that occur.
func (p *flamePicture) legend(root *box) {
	var seen [len(boxClasses)]bool
	var look func(b *box)
	look = func(b *box) {
		for _, c := range b.children {
			seen[p.frames[c.frame].origin] = true
			look(c)
		}
	}
	look(root)
	x := flameMargin
	p.print(`<g>`)
	for origin, c := range boxClasses {
		if !seen[origin] {
			continue
		}
		p.print(`<g class="%s"><rect x="%d" y="57" width="12" height="12"/></g>`, c.class, x)
		x += 17
		p.print(`<text class="sub" x="%d" y="67">%s</text>`, x, c.label)
		x += 22 + 7*len(c.label)
	}
	p.print("</g>\n")
}

// box draws a box and its children; from is the value of all boxes on its left.
func (p *flamePicture) box(b *box, from uint64, depth int) {
	class := "all"
	if b.frame != flameRoot {
		class = boxClasses[p.frames[b.frame].origin].class
	}
	n, size := p.label(b.frame), p.o.Value.Text(b.value)
	x, width := flameMargin+p.pixels(from), p.pixels(b.value)
	y := flameTop + depth*flameRow
	p.print(`<g class="%s" data-o="%d" data-b="%d" data-n="%d" data-s="%s"><title>%s</title>`, class, from, b.value, n,
		size, escape(p.about(b)))
	p.print(`<rect x="%.2f" y="%d" width="%.2f" height="%d"/>`, x, y, max(width-flameGap, flameLeast),
		flameRow-flameGap)
	if text := fitLabel(p.labels[n], size, width); text != "" {
		p.print(`<text x="%.2f" y="%.1f">%s</text>`, x+flamePad/2, float64(y)+flameBase, escape(text))
	}
	p.print("</g>\n")
	for _, c := range b.children {
		p.box(c, from, depth+1)
		from += c.value
	}
}

func (p *flamePicture) pixels(value uint64) float64 {
	return float64(value) / float64(p.sum) * flameInner
}

// label returns the index of a frame's names in p.labels.
func (p *flamePicture) label(id int32) int {
	if n, known := p.names[id]; known {
		return n
	}
	names := []string{"all"}
	if id != flameRoot {
		names = p.frames[id].labels()
	}
	p.names[id] = len(p.labels)
	p.labels = append(p.labels, names)
	return p.names[id]
}

// about is the tooltip of a box.
func (p *flamePicture) about(b *box) string {
	size := fmt.Sprintf("%s, %s of all", p.o.Value.Text(b.value), share(b.value, p.sum))
	if exact := p.o.Value.exact(b.value); p.o.Value != Count {
		size = fmt.Sprintf("%s (%s), %s of all", p.o.Value.Text(b.value), exact, share(b.value, p.sum))
	}
	if b.frame == flameRoot {
		return "all\n" + size
	}
	lines := []string{p.frames[b.frame].labels()[0], size}
	own := b.value - b.small
	for _, c := range b.children {
		own -= c.value
	}
	if own > 0 && own < b.value {
		lines = append(lines, p.o.Value.Text(own)+" here")
	}
	if b.small > 0 {
		lines = append(lines, fmt.Sprintf("%s in callees too small to draw (%d)", p.o.Value.Text(b.small), b.narrow))
	}
	if len(b.through) > 0 {
		var names []string
		for _, id := range b.through {
			names = append(names, p.frames[id].function)
		}
		lines = append(lines, "called through "+strings.Join(names, ", "))
	}
	return strings.Join(lines, "\n")
}

// script writes the picture's script.
func (p *flamePicture) script() {
	data, err := json.Marshal(map[string]any{
		"names": p.labels, "left": flameMargin, "width": flameInner, "gap": flameGap, "base": flameBase,
		"pad": flamePad, "char": flameChar, "least": flameLeast,
		"search": map[string]int{"x": flameWidth - flameMargin - 300, "y": 54, "width": 300, "height": 24},
	})
	if err != nil {
		p.err = err
	}
	p.print("<script>\n//<![CDATA[\n%s(%s);\n//]]>\n</script>\n", strings.TrimSpace(flameScript), data)
}

func (p *flamePicture) print(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

// escape makes any text safe inside of an element or an attribute.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}

func share(part, whole uint64) string {
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}
