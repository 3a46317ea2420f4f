package plot

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"memtrace/internal/render/layout"
)

const (
	mapLines  = 14 // rows that hold all segments, if none were left partly empty
	mapFew    = 5  // number of rows from which no segment is continued in the next one
	mapLine   = 26 * pixel
	mapBar    = 18 * pixel
	mapGap    = 5 * pixel
	mapWidth  = width - 2*margin - legendWidth
	mapPins   = 5 // that are numbered and named
	pinLine   = 19 * pixel
	deviceGap = 22 * pixel // above a device's first row, where there are several
	mapMost   = 8000       // segments that are drawn
)

// mapPart is a part of a segment within one row.
type mapPart struct {
	segment  int
	row      int
	x        vg.Length
	from, to int64 // bytes of the segment
}

// shown are the segments that are drawn.
func (m *Map) shown() []MapSegment { return m.Segments[:min(len(m.Segments), mapMost)] }

// layOut assigns segments to rows. Larger ones than a row continue in the next one.
func (m *Map) layOut() (parts []mapPart, rows int, scale float64) {
	most := int64(0)
	for _, s := range m.Segments {
		most = max(most, s.Size)
	}
	perRow := max(m.Size/mapLines, min(most, m.Size/mapFew), 1)
	scale = float64(mapWidth) / float64(perRow)
	x, row := vg.Length(0), 0
	for i, s := range m.shown() {
		wide := vg.Length(float64(s.Size) * scale)
		if first := i > 0 && m.Segments[i-1].Device != s.Device; first || x > 0 && x+wide > mapWidth+pixel/2 {
			x, row = 0, row+1
		}
		for from := int64(0); from < s.Size; {
			to := min(s.Size, from+max(int64(float64(mapWidth-x)/scale), 1))
			parts = append(parts, mapPart{i, row, x, from, to})
			x += max(vg.Length(float64(to-from)*scale), 2*pixel) + mapGap
			if from = to; from < s.Size {
				x, row = 0, row+1
			}
		}
	}
	return parts, row + 1, scale
}

// pins are the segments that little keeps, those with most free memory first.
func (m *Map) pins() (list []int) {
	for i, s := range m.shown() {
		if s.Pin != "" {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		return cmp.Compare(m.Segments[b].Size-m.Segments[b].Held, m.Segments[a].Size-m.Segments[a].Held)
	})
	return list[:min(len(list), mapPins)]
}

func (m *Map) devices() int {
	n := 1
	for i := 1; i < len(m.shown()); i++ {
		if m.Segments[i].Device != m.Segments[i-1].Device {
			n++
		}
	}
	return n
}

func (m *Map) height() vg.Length {
	_, rows, _ := m.layOut()
	high := 52*pixel + vg.Length(rows)*mapLine + 2*margin + 12*pixel
	if n := len(m.pins()); n > 0 {
		high += vg.Length(n+1)*pinLine + 6*pixel
	}
	if n := m.devices(); n > 1 {
		high += vg.Length(n) * deviceGap
	}
	return max(high, 80*pixel+vg.Length(len(m.Layers)+5)*21*pixel)
}

func (m *Map) draw(dc draw.Canvas) {
	parts, rows, scale := m.layOut()
	number := map[int]int{}
	for n, s := range m.pins() {
		number[s] = n + 1
	}
	largest := 0
	for i, s := range m.shown() {
		if s.Largest.Size > m.Segments[largest].Largest.Size {
			largest = i
		}
	}
	down, last, paint := vg.Length(0), int16(-1), m.paint()
	for _, p := range parts {
		s := &m.Segments[p.segment]
		if s.Device != last && m.devices() > 1 {
			down += deviceGap
			dc.FillText(style(12, ink), vg.Point{X: dc.Min.X, Y: dc.Max.Y - vg.Length(p.row)*mapLine - down + 5*pixel},
				fmt.Sprintf("device %d", s.Device))
		}
		last = s.Device
		top := dc.Max.Y - vg.Length(p.row)*mapLine - down
		one := mapRow{dc, p, paint, dc.Min.X + p.x, top, scale}
		one.draw(s, p.segment == largest)
		if n := number[p.segment]; n > 0 && p.from == 0 {
			one.badge(n)
		}
	}
	m.legend(dc)
	y := dc.Max.Y - vg.Length(rows)*mapLine - down - 12*pixel
	for n, i := range m.pins() {
		if n == 0 {
			dc.FillText(style(12.5, ink), vg.Point{X: dc.Min.X, Y: y},
				"Small blocks that keep large segments from going back to the driver:")
		}
		s := &m.Segments[i]
		at := vg.Point{X: dc.Min.X + 9*pixel, Y: y - vg.Length(n+1)*pinLine + 4*pixel}
		drawBadge(dc, at, n+1)
		keeps := " keeps "
		if len(s.Blocks) > 1 {
			keeps = " keep "
		}
		dc.FillText(style(12, ink), vg.Point{X: at.X + 15*pixel, Y: at.Y - 4*pixel}, clip(s.Pin, 120)+keeps+
			sizeOf(s.Size))
	}
}

// mapRow draws one part of a segment.
type mapRow struct {
	dc    draw.Canvas
	part  mapPart
	paint []color.RGBA
	left  vg.Length
	top   vg.Length
	scale float64
}

// span is the position of bytes of the segment; ok is false for those in other parts.
func (r *mapRow) span(at, size int64) (x0, x1 vg.Length, ok bool) {
	from, to := max(at, r.part.from), min(at+size, r.part.to)
	if from >= to {
		return 0, 0, false
	}
	return r.left + vg.Length(float64(from-r.part.from)*r.scale), r.left + vg.Length(float64(to-r.part.from)*r.scale),
		true
}

func (r *mapRow) draw(s *MapSegment, largest bool) {
	low, high := r.top-mapBar, r.top
	right := r.left + max(vg.Length(float64(r.part.to-r.part.from)*r.scale), 2*pixel)
	box := rectangle(r.left, low, right, high)
	r.dc.FillPolygon(color.White, box)
	if x0, x1, ok := r.span(s.Largest.At, s.Largest.Size); ok && largest {
		fillHatched(r.dc, alarm, x0, low, x1, high)
	}
	for _, b := range s.Blocks {
		if x0, x1, ok := r.span(b.At, b.Size); ok {
			layer := b.Layer
			if layer < 0 {
				layer = len(r.paint) - 1
			}
			r.dc.FillPolygon(r.paint[layer], rectangle(x0, low, max(x1, x0+0.8*pixel), high))
			if x1-x0 > 3*pixel { // a line between neighbours
				r.dc.StrokeLine2(draw.LineStyle{Color: color.White, Width: 0.8 * pixel}, x1, low, x1, high)
			}
		}
	}
	r.dc.StrokeLines(draw.LineStyle{Color: grey, Width: 0.8 * pixel}, append(box, box[0]))
}

// paint returns the colours of layers; that of all others is the last one.
func (m *Map) paint() []color.RGBA { return append(colours(m.Layers), light(layout.RestShade)) }

func (r *mapRow) badge(n int) {
	drawBadge(r.dc, vg.Point{X: r.left + 8*pixel, Y: r.top - mapBar/2}, n)
}

// drawBadge draws a number in a circle.
func drawBadge(dc draw.Canvas, at vg.Point, n int) {
	dc.DrawGlyph(draw.GlyphStyle{Color: ink, Radius: 7.5 * pixel, Shape: draw.CircleGlyph{}}, at)
	text := style(11, color.White)
	text.XAlign, text.YAlign = draw.XCenter, draw.YCenter
	dc.FillText(text, at, fmt.Sprint(n))
}

func fillHatched(dc draw.Canvas, c color.RGBA, x0, y0, x1, y1 vg.Length) {
	for x := x0 - (y1 - y0); x < x1; x += 6 * pixel {
		from, to := max(x, x0), min(x+(y1-y0), x1)
		dc.StrokeLine2(draw.LineStyle{Color: c, Width: 0.8 * pixel}, from, y0+from-x, to, y0+to-x)
	}
}

func (m *Map) legend(dc draw.Canvas) {
	x, y := dc.Max.X-legendWidth+22*pixel, dc.Max.Y-14*pixel
	entry := func(name string, paint func(x0, y0, x1, y1 vg.Length)) {
		paint(x, y, x+16*pixel, y+12*pixel)
		dc.FillText(style(12, ink), vg.Point{X: x + 23*pixel, Y: y + pixel}, clip(name, 30))
		y -= 20 * pixel
	}
	others := false
	for _, s := range m.Segments {
		others = others || slices.ContainsFunc(s.Blocks, func(b MapBlock) bool { return b.Layer < 0 })
	}
	paint := m.paint()
	names := m.Layers
	if others {
		names = append(names[:len(names):len(names)], moreName(m.More))
	}
	for i, name := range names {
		entry(name, func(x0, y0, x1, y1 vg.Length) { dc.FillPolygon(paint[i], rectangle(x0, y0, x1, y1)) })
	}
	outline := func(x0, y0, x1, y1 vg.Length) {
		box := rectangle(x0, y0, x1, y1)
		dc.StrokeLines(draw.LineStyle{Color: grey, Width: 0.8 * pixel}, append(box, box[0]))
	}
	entry("free", outline)
	var most int64
	for _, s := range m.Segments {
		most = max(most, s.Largest.Size)
	}
	if most > 0 {
		entry("largest hole: "+sizeOf(most), func(x0, y0, x1, y1 vg.Length) {
			fillHatched(dc, alarm, x0, y0, x1, y1)
			outline(x0, y0, x1, y1)
		})
	}
	if m.Outside > 0 {
		dc.FillText(style(12, alarm), vg.Point{X: x, Y: y}, "in no known segment: "+sizeOf(m.Outside))
	}
}
