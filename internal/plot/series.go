package plot

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"memtrace/internal/render/layout"
)

// drawSeries draws values over one axis, with the legend next to it.
func (c *Chart) drawSeries(dc draw.Canvas) {
	p := plot.New()
	p.X.Label.Text, p.X.Label.TextStyle.Font.Size = clip(c.XLabel, 80), 12*pixel
	p.X.Tick.Marker, p.Y.Tick.Marker = numberTicks{c.Time}, byteTicks{}
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Tick.Label.Font.Size, axis.LineStyle.Color = 11.5*pixel, grey
		axis.Tick.LineStyle.Color = grey
		axis.Padding = 0
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, faint
	p.Add(grid)
	legend := plot.NewLegend()
	legend.Top, legend.Left, legend.Padding = true, true, 5*pixel
	legend.TextStyle.Font.Size, legend.ThumbnailWidth = 12*pixel, 16*pixel
	shapes := c.shapes()
	for i, s := range shapes {
		if c.Stack { // in stacking order
			s = shapes[len(shapes)-1-i]
		}
		legend.Add(clip(s.name, nameRunes), s)
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	for i, s := range shapes {
		for j := range s.x {
			if i == 0 && j == 0 {
				p.X.Min, p.X.Max = s.x[0], s.x[0]
			}
			p.X.Min, p.X.Max = min(p.X.Min, s.x[j]), max(p.X.Max, s.x[j])
			p.Y.Min, p.Y.Max = min(p.Y.Min, s.high[j]), max(p.Y.Max, s.high[j])
		}
		p.Add(s)
	}
	if p.X.Max == p.X.Min {
		p.X.Min, p.X.Max = p.X.Min-1, p.X.Max+1
	}
	p.Y.Max *= 1.1 // room for the peak's label
	p.Add(marks{c})
	body := draw.Crop(dc, 0, -legendWidth, c.lanesHeight(), 0)
	p.Draw(body)
	c.begin, c.end = p.X.Min, p.X.Max
	c.drawLanes(draw.Crop(dc, 0, -legendWidth, 0, c.lanesHeight()-(dc.Max.Y-dc.Min.Y)), axisOf(p, body))
	legend.Draw(draw.Crop(dc, dc.Max.X-dc.Min.X-legendWidth+12*pixel, 0, 0, 0))
}

// shape is a series as it is drawn: a line, or an area between low and high.
type shape struct {
	name      string
	x         []float64
	low, high []float64 // low is nil of a line
	color     color.RGBA
	line      bool // high is drawn as a line
}

func (c *Chart) shapes() []shape {
	var shapes []shape
	var below []float64
	paint := colours(namesOf(c.Series, func(s Series) string { return s.Name }))
	for i, s := range c.Series {
		one := shape{name: s.Name, color: paint[i], line: !c.Stack || s.Line}
		switch {
		case s.Rest:
			one.color = light(layout.RestShade)
		case s.Growth:
			one.color = alarm
		case s.Line:
			one.color = ink
		}
		for j, x := range s.X {
			if s.Level && j > 0 {
				one.x, one.high = append(one.x, float64(x)), append(one.high, one.high[len(one.high)-1])
			}
			if c.Stack && (c.Width == 0 || !s.Line) { // a column of its own
				left, right := float64(x)-0.5, float64(x)+0.5
				if c.Width > 0 {
					left, right = float64(x), float64(x)+float64(c.Width)
				}
				one.x, one.high = append(one.x, left, right), append(one.high, float64(s.Bytes[j]), float64(s.Bytes[j]))
				continue
			}
			one.x, one.high = append(one.x, float64(x)), append(one.high, float64(s.Bytes[j]))
		}
		switch {
		case c.Stack && !s.Line:
			if below == nil {
				below = make([]float64, len(one.x))
			}
			one.low = below
			for j := range one.high {
				one.high[j] += below[j]
			}
			below = one.high
		case s.Filled:
			one.low = make([]float64, len(one.x))
		}
		shapes = append(shapes, one)
	}
	return shapes
}

// Plot implements plot.Plotter.
func (s shape) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var points []vg.Point
	for i := range s.x {
		points = append(points, vg.Point{X: x(s.x[i]), Y: y(s.high[i])})
	}
	if s.low != nil {
		area := append([]vg.Point(nil), points...)
		for i := len(s.x) - 1; i >= 0; i-- {
			area = append(area, vg.Point{X: x(s.x[i]), Y: y(s.low[i])})
		}
		c.FillPolygon(s.fill(), area)
	}
	if s.line {
		c.StrokeLines(s.stroke(), points)
	}
}

func (s shape) fill() color.RGBA {
	if s.line { // an area under a line is lighter than the line
		mix := func(v uint8) uint8 { return uint8((int(v) + 3*255) / 4) }
		return color.RGBA{mix(s.color.R), mix(s.color.G), mix(s.color.B), 255}
	}
	return s.color
}

func (s shape) stroke() draw.LineStyle { return draw.LineStyle{Color: s.color, Width: 1.6 * pixel} }

// Thumbnail implements plot.Thumbnailer.
func (s shape) Thumbnail(c *draw.Canvas) {
	if s.low != nil {
		c.FillPolygon(s.fill(), rectangle(c.Min.X, c.Min.Y, c.Max.X, c.Max.Y))
	}
	if s.line {
		middle := (c.Min.Y + c.Max.Y) / 2
		c.StrokeLine2(s.stroke(), c.Min.X, middle, c.Max.X, middle)
	}
}

// marks draws the peak and out-of-memory errors.
type marks struct{ chart *Chart }

// Plot implements plot.Plotter.
func (m marks) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, oom := range m.chart.OOM {
		at := x(float64(oom))
		c.StrokeLine2(draw.LineStyle{Color: alarm, Width: 1.5 * pixel, Dashes: []vg.Length{4 * pixel, 3 * pixel}}, at,
			c.Min.Y, at, c.Max.Y)
		c.FillText(style(11, alarm), vg.Point{X: at + 3*pixel, Y: c.Min.Y + 5*pixel}, "out of memory")
	}
	if peak := m.chart.Peak; peak != nil {
		at := vg.Point{X: x(float64(peak.X)), Y: y(float64(peak.Bytes))}
		c.DrawGlyph(draw.GlyphStyle{Color: ink, Radius: 3.5 * pixel, Shape: draw.CircleGlyph{}}, at)
		text := style(12.5, ink)
		if at.X > (c.Min.X+c.Max.X)/2 {
			text.XAlign = draw.XRight
		}
		label := clip(peak.Text, 60)
		box := text.Rectangle(label)
		x0, y0 := at.X+box.Min.X, at.Y+7*pixel+box.Min.Y
		c.FillPolygon(color.White, rectangle(x0-2*pixel, y0, x0+box.Max.X-box.Min.X+2*pixel, y0+box.Max.Y-box.Min.Y))
		c.FillText(text, vg.Point{X: at.X, Y: at.Y + 7*pixel}, label)
	}
}
