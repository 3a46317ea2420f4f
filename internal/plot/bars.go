package plot

import (
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"memtrace/analyzer/report"
)

const (
	panelsTop = 66 * pixel  // of title and margins
	panelHead = 50 * pixel  // of a panel's title, and room below it
	panelBar  = 30 * pixel  // of a bar, where there is room
	panelMost = 420 * pixel // of a panel
)

// panelRows is the number of rows of panels: one panel has the whole width, more are in two columns.
func (c *Chart) panelRows() int { return (len(c.Panels) + 1) / 2 }

// panelHeight is as much as the panel of a row with most bars needs.
func (c *Chart) panelHeight(row int) vg.Length {
	bars := 0
	for _, p := range c.Panels[2*row : min(2*row+2, len(c.Panels))] {
		bars = max(bars, len(p.Bars))
	}
	return min(panelHead+vg.Length(bars)*panelBar, panelMost)
}

// drawPanels draws horizontal bars, one panel for each run, in two columns.
func (c *Chart) drawPanels(dc draw.Canvas) {
	columns := min(2, len(c.Panels))
	wide, top := (dc.Max.X-dc.Min.X)/vg.Length(columns), dc.Max.Y
	most := int64(1)
	for _, p := range c.Panels {
		for _, b := range p.Bars {
			most = max(most, b.Bytes)
		}
	}
	for i, p := range c.Panels {
		left, high := dc.Min.X+vg.Length(i%columns)*wide, c.panelHeight(i/2)
		drawPanel(draw.Canvas{Canvas: dc.Canvas,
			Rectangle: vg.Rectangle{Min: vg.Point{X: left, Y: top - high + 12*pixel},
				Max: vg.Point{X: left + wide - 10*pixel, Y: top}}}, p, most)
		if i%2 == 1 {
			top -= high
		}
	}
}

func drawPanel(dc draw.Canvas, p Panel, most int64) {
	dc.FillText(style(13.5, ink), vg.Point{X: dc.Min.X, Y: dc.Max.Y - 14*pixel}, clip(p.Title, 40)+" — "+
		sizeOf(p.Total))
	bars := p.Bars
	step := min((dc.Max.Y-dc.Min.Y-26*pixel)/vg.Length(len(bars)), panelBar)
	names, values := 175*pixel, 120*pixel
	scale := (dc.Max.X - dc.Min.X - names - values) / vg.Length(most)
	size := min(12.5, float64(step/pixel)*0.85)
	paint := colours(namesOf(bars, func(b Bar) string { return b.Name }))
	for i, b := range bars {
		y := dc.Max.Y - 26*pixel - vg.Length(i+1)*step
		text := style(size, ink)
		text.XAlign, text.YAlign = draw.XRight, draw.YCenter
		middle := y + step/2
		dc.FillText(text, vg.Point{X: dc.Min.X + names - 8*pixel, Y: middle}, clip(b.Name, 28))
		x := dc.Min.X + names
		end := x + max(vg.Length(max(b.Bytes, 0))*scale, pixel)
		fillBar(dc, b.Look, paint[i], x, y+step*0.14, end, y+step*0.86)
		text.XAlign = draw.XLeft
		dc.FillText(text, vg.Point{X: end + 6*pixel, Y: middle}, sizeOf(b.Bytes)+"  "+percentOf(b.Bytes, p.Total))
	}
}

// drawStacks draws columns of parts with a legend next to each. Parts of 5 % and more have a percentage.
func (c *Chart) drawStacks(dc draw.Canvas) {
	wide := (dc.Max.X - dc.Min.X) / vg.Length(len(c.Stacks))
	most := int64(1)
	for _, p := range c.Stacks {
		most = max(most, p.Total)
	}
	for i, p := range c.Stacks {
		left := dc.Min.X + vg.Length(i)*wide
		column := draw.Canvas{Canvas: dc.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: left, Y: dc.Min.Y + 24*pixel},
			Max: vg.Point{X: left + wide, Y: dc.Max.Y - 6*pixel}}}
		drawStack(column, p, most)
	}
}

func drawStack(dc draw.Canvas, p Panel, most int64) {
	scale := (dc.Max.Y - dc.Min.Y - 22*pixel) / vg.Length(most)
	left, right := dc.Min.X+10*pixel, dc.Min.X+130*pixel
	y := dc.Min.Y
	paint := colours(namesOf(p.Bars, func(b Bar) string { return b.Name }))
	for i := len(p.Bars) - 1; i >= 0; i-- { // the largest on top
		b := p.Bars[i]
		top := y + vg.Length(b.Bytes)*scale
		fillBar(dc, b.Look, paint[i], left, y, right, top)
		if b.Bytes*20 >= p.Total {
			bracket(dc, right+5*pixel, y+pixel, top-pixel, percentOf(b.Bytes, p.Total))
		}
		y = top
	}
	middle := style(12.5, ink)
	middle.XAlign = draw.XCenter
	dc.FillText(middle, vg.Point{X: (left + right) / 2, Y: y + 6*pixel}, sizeOf(p.Total))
	dc.FillText(middle, vg.Point{X: (left + right) / 2, Y: dc.Min.Y - 18*pixel}, clip(p.Title, 20))
	step := min(22*pixel, (dc.Max.Y-dc.Min.Y-22*pixel)/vg.Length(len(p.Bars)))
	for i, b := range p.Bars {
		line := dc.Max.Y - 22*pixel - vg.Length(i)*step
		x := right + 75*pixel
		fillBar(dc, b.Look, paint[i], x, line-10*pixel, x+14*pixel, line)
		dc.FillText(style(12, ink), vg.Point{X: x + 20*pixel, Y: line - 9*pixel}, clip(b.Name, 22)+"  "+sizeOf(b.Bytes))
	}
}

func bracket(dc draw.Canvas, x, low, high vg.Length, text string) {
	dc.StrokeLines(draw.LineStyle{Color: ink, Width: pixel}, []vg.Point{{X: x, Y: low}, {X: x + 5*pixel, Y: low},
		{X: x + 5*pixel, Y: high}, {X: x, Y: high}})
	label := style(12, ink)
	label.YAlign = draw.YCenter
	dc.FillText(label, vg.Point{X: x + 10*pixel, Y: (low + high) / 2}, text)
}

// fillBar draws a part in its colour, white if no rule matched it, hatched if no trace has it.
func fillBar(dc draw.Canvas, look Look, c color.RGBA, x0, y0, x1, y1 vg.Length) {
	box := rectangle(x0, y0, x1, y1)
	if look != Plain {
		c = color.RGBA{255, 255, 255, 255}
	}
	dc.FillPolygon(c, box)
	if look == Untrackable {
		for x := x0 - (y1 - y0); x < x1; x += 6 * pixel {
			from, to := max(x, x0), min(x+(y1-y0), x1)
			dc.StrokeLine2(draw.LineStyle{Color: grey, Width: 0.8 * pixel}, from, y0+from-x, to, y0+to-x)
		}
	}
	edge := color.Color(color.White)
	if look != Plain {
		edge = grey
	}
	dc.StrokeLines(draw.LineStyle{Color: edge, Width: 0.8 * pixel}, append(box, box[0]))
}

func sizeOf(bytes int64) string {
	if bytes < 0 {
		return "-" + report.SizeText(uint64(-bytes))
	}
	return report.SizeText(uint64(bytes))
}

func percentOf(part, whole int64) string {
	if whole <= 0 {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole)))
}
