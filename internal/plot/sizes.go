package plot

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"memtrace/internal/render/layout"
)

// SizeClass has the blocks of at least From and less than To bytes.
type SizeClass struct {
	From, To    uint64
	Bytes       int64 // live at the peak
	Blocks      int64 // of these, how many
	Allocations int64 // in the whole run
}

// sizes sorts blocks into classes by powers of two.
func sizes(runs []Run, _ Options) (*Chart, error) {
	h := runs[0].Summary.History
	switch {
	case h == nil || len(h.Blocks) == 0:
		return nil, errNothing
	case h.LeftOut > 0:
		return nil, errors.New("not every block is known")
	}
	var classes [65]SizeClass
	peak := h.PeakEvent()
	low, high := len(classes), 0
	for _, b := range h.Blocks {
		n := max(bits.Len64(b.Size), 1)
		low, high = min(low, n), max(high, n)
		classes[n].Allocations++
		if b.Born <= peak && peak < b.Died {
			classes[n].Blocks++
			classes[n].Bytes += signed(b.Size)
		}
	}
	c := &Chart{Title: "Sizes of blocks", Note: fmt.Sprintf("%s, %s", runs[0].Name, levelName(h.Level))}
	for n := low; n <= high; n++ {
		classes[n].From, classes[n].To = 1<<(n-1), 1<<n
		c.Sizes = append(c.Sizes, classes[n])
	}
	return c, nil
}

// sizeRows are the values of a picture of sizes.
func sizeRows(classes []SizeClass) [][]string {
	rows := [][]string{{"from_bytes", "below_bytes", "live_at_peak_bytes", "live_at_peak_blocks", "allocations"}}
	for _, s := range classes {
		row := []string{strconv.FormatUint(s.From, 10), strconv.FormatUint(s.To, 10)}
		for _, n := range []int64{s.Bytes, s.Blocks, s.Allocations} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		rows = append(rows, row)
	}
	return rows
}

// drawSizes draws two rows of columns over one axis of sizes: the blocks live at the peak, and the number of
// allocations of such blocks.
func (c *Chart) drawSizes(dc draw.Canvas) {
	half := (dc.Max.Y - dc.Min.Y) / 2
	var bytes, counts int64
	for _, s := range c.Sizes {
		bytes, counts = bytes+s.Bytes, counts+s.Allocations
	}
	upper := draw.Crop(dc, 0, 0, half, 0)
	c.drawColumns(upper, "live at the peak: "+sizeOf(bytes), 0, func(s *SizeClass) (int64, string) {
		return s.Bytes, shareLabel(s.Bytes, bytes)
	})
	lower := draw.Crop(dc, 0, 0, 0, -half)
	c.drawColumns(lower, "allocations in the whole run: "+grouped(counts), 1, func(s *SizeClass) (int64, string) {
		return s.Allocations, shareLabel(s.Allocations, counts)
	})
}

// shareLabel is the label above a column that is not zero.
func shareLabel(part, whole int64) string {
	switch share := 100 * float64(part) / float64(max(whole, 1)); {
	case part == 0:
		return ""
	case share < 0.1:
		return "<0.1 %"
	default:
		return percentOf(part, whole)
	}
}

const columnGap = 3 * pixel

func (c *Chart) drawColumns(dc draw.Canvas, title string, colour int, value func(*SizeClass) (int64, string)) {
	dc.FillText(style(13.5, ink), vg.Point{X: dc.Min.X, Y: dc.Max.Y - 14*pixel}, title)
	most := int64(1)
	for i := range c.Sizes {
		n, _ := value(&c.Sizes[i])
		most = max(most, n)
	}
	floor, ceiling := dc.Min.Y+34*pixel, dc.Max.Y-40*pixel
	step := min((dc.Max.X-dc.Min.X-60*pixel)/vg.Length(len(c.Sizes)), 90*pixel)
	left := dc.Min.X + 30*pixel
	label, ticks := style(min(12, float64(step/pixel)/3.9), ink), style(11, grey)
	label.XAlign, ticks.XAlign = draw.XCenter, draw.XCenter
	every := max(1, int((56*pixel+step-1)/step)) // so that ticks do not touch
	for i := range c.Sizes {
		n, text := value(&c.Sizes[i])
		x := left + vg.Length(i)*step
		top := floor + vg.Length(n)/vg.Length(most)*(ceiling-floor)
		if n > 0 {
			dc.FillPolygon(light(layout.LayerShades[colour]), rectangle(x+columnGap/2, floor, x+step-columnGap/2,
				max(top, floor+pixel)))
			dc.FillText(label, vg.Point{X: x + step/2, Y: max(top, floor+pixel) + 4*pixel}, text)
		}
	}
	for i := range len(c.Sizes) + 1 {
		if i%every == 0 {
			x := left + vg.Length(i)*step
			dc.StrokeLine2(draw.LineStyle{Color: grey, Width: pixel}, x, floor-5*pixel, x, floor)
			dc.FillText(ticks, vg.Point{X: x, Y: floor - 19*pixel}, edge(c.Sizes[0].From, i))
		}
	}
	dc.StrokeLine2(draw.LineStyle{Color: grey, Width: pixel}, left, floor, left+vg.Length(len(c.Sizes))*step,
		floor)
}

// edge is the border between two classes as text: 512 B, 1 KiB, 2 MiB.
func edge(from uint64, class int) string {
	n := bits.Len64(from) - 1 + class
	return strconv.FormatUint(1<<(n%10), 10) + " " + []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}[n/10]
}

// grouped writes a count with commas.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
