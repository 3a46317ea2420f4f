package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// panel is one graph with its title.
type panel struct {
	title string
	graph graph
}

// Measures of the picture, in pixels.
const (
	boxHeight = 30
	rowHeight = 78
	gap       = 18
	margin    = 28
	letter    = 7.3 // width of one, at 13 px
	titleSize = 40
)

// box is a room on the picture.
type box struct {
	name       string
	x, y, wide float64
}

// draw puts panels beside each other.
func draw(panels ...panel) string {
	var b strings.Builder
	wide, high := 0.0, 0.0
	var bodies []string
	for _, p := range panels {
		body, w, h := p.draw(wide)
		bodies = append(bodies, body)
		wide, high = wide+w, max(high, h)
	}
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="system-ui, sans-serif" font-size="13">`+"\n", wide, high, wide, high)
	b.WriteString(
		`<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#64748b"/></marker></defs>` + "\n")
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" fill="#fff"/>`+"\n", wide, high)
	for _, body := range bodies {
		b.WriteString(body)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// draw returns a panel as SVG that begins at a distance from the left, and its size.
func (p panel) draw(left float64) (body string, wide, high float64) {
	arrows := p.graph.reduced()
	rows := p.rows(arrows)
	boxes := make(map[string]*box)
	for _, row := range rows {
		x := 0.0
		for _, r := range row {
			r.x = x
			x += r.wide + gap
			boxes[r.name] = r
		}
		wide = max(wide, x-gap)
	}
	wide = max(wide, letter*float64(len(p.title)))
	for n, row := range rows {
		last := row[len(row)-1]
		shift := left + margin + (wide-last.x-last.wide)/2
		for _, r := range row {
			r.x += shift
			r.y = titleSize + float64(len(rows)-1-n)*rowHeight
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" font-weight="600" fill="#0f172a">%s</text>`+"\n", left+margin,
		24.0, p.title)
	for _, name := range sorted(arrows) {
		for _, other := range arrows[name] {
			b.WriteString(arrow(boxes[name], boxes[other]))
		}
	}
	for _, name := range sorted(arrows) {
		r := boxes[name]
		fmt.Fprintf(&b,
			`<rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="6" fill="%s" stroke="#475569"/><text x="%.1f" y="%.1f" text-anchor="middle" fill="#0f172a">%s</text>`+"\n",
			r.x, r.y, r.wide, boxHeight, fill(name), r.x+r.wide/2, r.y+20, name)
	}
	return b.String(), wide + 2*margin, titleSize + float64(len(rows))*rowHeight
}

// rows puts the rooms on their levels, near to what they need.
func (p panel) rows(arrows graph) [][]*box {
	level := p.graph.levels()
	deepest := 0
	for _, n := range level {
		deepest = max(deepest, n)
	}
	rows := make([][]*box, deepest+1)
	place := make(map[string]float64)
	for n := range rows {
		for _, name := range sorted(arrows) {
			if level[name] == n {
				rows[n] = append(rows[n], &box{name: name, wide: letter*float64(len(name)) + 20})
			}
		}
		at := func(r *box) float64 {
			sum := 0.0
			for _, other := range arrows[r.name] {
				sum += place[other]
			}
			return sum / max(1, float64(len(arrows[r.name])))
		}
		slices.SortStableFunc(rows[n], func(a, b *box) int { return cmp.Compare(at(a), at(b)) })
		for i, r := range rows[n] {
			place[r.name] = (float64(i) + 0.5) / float64(len(rows[n]))
		}
	}
	return rows
}

func arrow(from, to *box) string {
	x1, y1, x2, y2 := from.x+from.wide/2, from.y+boxHeight, to.x+to.wide/2, to.y
	if y2 < y1 { // upwards, where a header is needed from below
		y1, y2 = from.y, to.y+boxHeight
	}
	bend := (y2 - y1) / 2
	return fmt.Sprintf(
		`<path d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f" fill="none" stroke="#94a3b8" stroke-width="1.2" marker-end="url(#tip)"/>`+"\n", x1, y1, x1, y1+bend, x2, y2-bend, x2, y2)
}

// fill is the colour of each part.
func fill(name string) string {
	switch top, _, _ := strings.Cut(name, "/"); top {
	case "analyzer":
		return "#dbeafe"
	case "trace":
		return "#dcfce7"
	case "cmd":
		return "#fde68a"
	case "interpose":
		return "#fecaca"
	}
	return "#f1f5f9"
}

func sorted(g graph) []string {
	var names []string
	for name := range g {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
