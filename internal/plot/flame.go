package plot

import (
	"errors"
	"image/color"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Flame is a flame graph that was laid out: callers above what they called.
type Flame struct {
	Title, Note string
	Sum         uint64
	Depth       int // rows
	Boxes       []FlameBox
	Legend      []FrameOwner // the classes of boxes, of which those that occur are shown
}

// FlameBox is a box of Value out of Sum that begins after From. The first of Names that fits is written.
type FlameBox struct {
	Depth       int
	From, Value uint64
	Names       []string // the longest first
	Size        string
	Class       string
}

// FrameOwner is the owner of a box's code.
type FrameOwner struct{ Class, Label string }

func flame(runs []Run, _ Options) (*Chart, error) {
	f := runs[0].Flame
	switch {
	case f == nil:
		return nil, errors.New("no call stacks were read")
	case f.Sum == 0:
		return nil, errNothing
	case f.Depth <= 2 && len(f.Boxes) == 2 && f.Boxes[1].Class == "other":
		return nil, errors.New("no block has a call stack")
	}
	return &Chart{Title: f.Title, Note: f.Note, Flame: f}, nil
}

// flameRows are the values of a flame graph: each box with its callers, outermost first.
func flameRows(f *Flame) [][]string {
	rows := [][]string{{"depth", "stack", "bytes"}}
	var names []string
	for _, b := range f.Boxes {
		names = append(names[:b.Depth], b.Names[0])
		rows = append(rows, []string{strconv.Itoa(b.Depth), strings.Join(names, ";"), strconv.FormatUint(b.Value, 10)})
	}
	return rows
}

const (
	flameRow = 19 * pixel
	flameTop = 30 * pixel // of the legend, above the boxes
)

func (f *Flame) height() vg.Length {
	return 52*pixel + flameTop + vg.Length(f.Depth)*flameRow + 2*margin + 6*pixel
}

// flameColours differ in lightness, too, for colour-blind readers: the user's own code is darkest.
var flameColours = map[string]color.RGBA{"": {228, 231, 235, 255}, "user": {240, 160, 50, 255},
	"package": {205, 226, 241, 255}, "native": {224, 224, 224, 255}, "other": {241, 241, 241, 255}}

func (f *Flame) draw(dc draw.Canvas) {
	seen := map[string]bool{}
	for _, b := range f.Boxes {
		seen[b.Class] = true
	}
	x, y := dc.Min.X, dc.Max.Y-14*pixel
	for _, owner := range f.Legend {
		if seen[owner.Class] {
			dc.FillPolygon(flameColours[owner.Class], rectangle(x, y, x+12*pixel, y+12*pixel))
			text := style(12, ink)
			dc.FillText(text, vg.Point{X: x + 18*pixel, Y: y + pixel}, owner.Label)
			x += 18*pixel + text.Width(owner.Label) + 20*pixel
		}
	}
	hint := style(12, grey)
	hint.XAlign = draw.XRight
	dc.FillText(hint, vg.Point{X: dc.Max.X, Y: y + pixel},
		"a box is as wide as what was allocated in it and in what it called")
	scale := float64(dc.Max.X-dc.Min.X) / float64(f.Sum)
	for _, b := range f.Boxes {
		left, right := dc.Min.X+vg.Length(float64(b.From)*scale), dc.Min.X+vg.Length(float64(b.From+b.Value)*scale)
		top := dc.Max.Y - flameTop - vg.Length(b.Depth)*flameRow
		box := rectangle(left, top-flameRow, max(right, left+0.4*pixel), top)
		dc.FillPolygon(flameColours[b.Class], box)
		if right-left > 1.5*pixel {
			dc.StrokeLines(draw.LineStyle{Color: color.White, Width: pixel}, append(box, box[0]))
		}
		text := style(11, ink)
		if name := fit(text, b.Names, b.Size, right-left-8*pixel); name != "" {
			dc.FillText(text, vg.Point{X: left + 4*pixel, Y: top - 13.5*pixel}, name)
		}
	}
}

// fit returns the longest of the names that has room, with the size if that fits, too; else the beginning of the last
// one, or nothing.
func fit(text draw.TextStyle, names []string, size string, room vg.Length) string {
	for _, name := range names {
		name = clip(name, 200)
		if both := name + "  " + size; text.Width(both) <= room {
			return both
		}
		if text.Width(name) <= room {
			return name
		}
	}
	last := []rune(clip(names[len(names)-1], 200))
	for n := min(len(last)-1, int(room/(3*pixel))); n >= 3; n-- {
		if short := string(last[:n]) + "…"; text.Width(short) <= room {
			return short
		}
	}
	return ""
}
