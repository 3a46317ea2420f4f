package plot

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// Lane is the events below a plot over time.
type Lane struct {
	Name  string
	Items []LaneItem
}

// LaneItem is an interval of the axis, or a position on it.
type LaneItem struct {
	Name     string
	From, To int64
	Moment   bool
	Parts    []report.PhasePart // of an interval that belongs to phases
}

const (
	laneLine   = 17 * pixel
	laneBar    = 13 * pixel
	laneText   = 10.5
	lanesAbove = 8 * pixel
)

var laneShades = []color.RGBA{{205, 205, 205, 255}, {228, 228, 228, 255}}

// lanesOf adds lanes to a chart's axis; at is the position of a time on it.
func lanesOf(s *report.Summary, at func(time int64) int64) (list []Lane) {
	for _, l := range layout.Lanes(s) {
		if l.Name == layout.OutOfMemory { // a line through the plot
			continue
		}
		lane := Lane{Name: l.Name}
		for _, i := range l.Items {
			lane.Items = append(lane.Items, LaneItem{i.Name, at(i.FromNS), at(i.ToNS), i.Moment, i.Parts})
		}
		list = append(list, lane)
	}
	return list
}

// phases are those that the lanes have, in the order of their first intervals.
func (c *Chart) phases() (all []report.PhasePart) {
	for _, l := range c.Lanes {
		for _, i := range l.Items {
			all = report.JoinPhases(all, i.Parts)
		}
	}
	return all
}

// lanesHeight is the height of the lanes in the picture.
func (c *Chart) lanesHeight() vg.Length {
	if len(c.Lanes) == 0 {
		return 0
	}
	high := lanesAbove + vg.Length(len(c.Lanes))*laneLine
	if len(c.phases()) > 0 {
		high += laneLine
	}
	return high
}

// drawLanes draws the lanes, and below them what the colours of phases mean. x is the plot's axis.
func (c *Chart) drawLanes(dc draw.Canvas, x func(float64) vg.Length) {
	top := dc.Max.Y - lanesAbove
	left, right := x(0), x(1)
	for _, l := range c.Lanes {
		name := style(laneText, grey)
		name.XAlign, name.YAlign = draw.XRight, draw.YCenter
		dc.FillText(name, vg.Point{X: left - 8*pixel, Y: top - laneBar/2}, l.Name)
		inside := draw.Crop(dc, left-dc.Min.X, -(dc.Max.X - right), 0, 0)
		c.drawLane(inside, l, top, func(at int64) vg.Length {
			return left + (right-left)*vg.Length((float64(at)-c.begin)/(c.end-c.begin))
		})
		top -= laneLine
	}
	c.drawPhaseLegend(dc, left, top)
}

// drawLane draws a lane's items, and their names where there is room.
func (c *Chart) drawLane(dc draw.Canvas, l Lane, top vg.Length, x func(at int64) vg.Length) {
	free := dc.Min.X - 1 // where there is room for the next name
	for n, i := range l.Items {
		from, to := max(x(i.From), dc.Min.X), min(x(i.To), dc.Max.X)
		if to < dc.Min.X || from > dc.Max.X {
			continue
		}
		to = max(to, from+pixel/2)
		text := style(laneText, ink)
		text.YAlign = draw.YCenter
		at, name := vg.Point{X: from + 3*pixel, Y: top - laneBar/2}, clip(i.Name, nameRunes)
		wide := text.Width(name)
		switch {
		case len(i.Parts) > 0:
			drawPhases(dc, i.Parts, from, to, top)
		case i.Moment:
			dc.FillPolygon(grey, rectangle(from, top-laneBar, from+1.5*pixel, top))
			if at.X+wide > dc.Max.X { // before the line
				at.X = from - 3*pixel - wide
			}
		default:
			dc.FillPolygon(laneShades[n%len(laneShades)], rectangle(from, top-laneBar, to, top))
		}
		if i.Moment && (at.X < free || at.X < dc.Min.X) || !i.Moment && wide+6*pixel > to-from {
			continue
		}
		dc.FillText(text, at, name)
		free = max(at.X+wide, to) + 4*pixel
	}
}

// drawPhases divides an interval among its phases.
func drawPhases(dc draw.Canvas, parts []report.PhasePart, from, to, top vg.Length) {
	var sum int64
	for _, p := range parts {
		sum += max(p.NS, 1)
	}
	left := from
	for _, p := range parts {
		right := left + (to-from)*vg.Length(float64(max(p.NS, 1))/float64(sum))
		dc.FillPolygon(light(layout.PhaseShade(p.Phase)), rectangle(left, top-laneBar, right, top))
		left = right
	}
}

func (c *Chart) drawPhaseLegend(dc draw.Canvas, left, top vg.Length) {
	text := style(laneText, grey)
	text.YAlign = draw.YCenter
	for _, p := range c.phases() {
		dc.FillPolygon(light(layout.PhaseShade(p.Phase)),
			rectangle(left, top-laneBar+2*pixel, left+9*pixel, top-2*pixel))
		dc.FillText(text, vg.Point{X: left + 13*pixel, Y: top - laneBar/2}, p.Phase)
		left += 13*pixel + text.Width(p.Phase) + 14*pixel
	}
}

// axisOf is the position of a plot's axis on a canvas: 0 its left end, 1 its right end.
func axisOf(p *plot.Plot, dc draw.Canvas) func(float64) vg.Length {
	data := p.DataCanvas(dc)
	return data.X
}
