package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math/bits"
	"slices"
	"strings"

	"memtrace/analyzer/diff"
	"memtrace/analyzer/render"
	"memtrace/analyzer/render/compare"
	"memtrace/analyzer/render/layout"
	"memtrace/analyzer/render/phrase"
	"memtrace/analyzer/report"
	"memtrace/internal/visible"
)

//go:embed diff.html
var diffText string

var diffTemplate = template.Must(template.New("diff").Parse(diffText))

var diffOrder = []string{"elements", "theme", "diff"}

// maxDiffRows bounds the rows of a table of a difference.
const maxDiffRows = 400

// diffContent is what the template of a difference shows.
type diffContent struct {
	Title, Names, Writer  string
	Style                 template.CSS
	Script                template.JS
	StyleHash, ScriptHash string

	Answer    string
	Facts     []layout.Fact
	LevelName string
	Lines     []diffLine
	Words     string
	BasePeak  string
	NewPeak   string
	Levels    []diffLevel
	States    []diffState
	Groups    []diffGroup
	Notes     []string
	Text      string
	Traces    string // of a command
}

// diffLine is the outline of a side.
type diffLine struct{ Class, Path string }

type diffLevel struct{ Name, Base, New, Change, Percent string }

// diffState is what became of a row, in a word and a colour.
type diffState struct{ Word, Class string }

var diffStates = map[string]diffState{
	diff.StateNew: {"NEW", "added"}, diff.StateGone: {"REMOVED", "gone"}, diff.StateGrew: {"GREW", "grew"},
	diff.StateShrank: {"SHRANK", "shrank"}, diff.StateSame: {"UNCHANGED", "same"},
}

type diffGroup struct {
	ID, By, Title string
	Words         string // the table in a line
	Rows          []diffRow
	More          string
}

type diffRow struct {
	Name, Was, State, Class string
	Base, New, Change       string
	Left, Width             string // of its bar, in hundredths, around the middle
}

// WriteDiff writes the page of a difference. The summaries are those that it was made of.
func WriteDiff(w io.Writer, d *diff.Diff, base, changed *report.Summary, o Options) error {
	script := scriptText(diffOrder)
	var text bytes.Buffer
	if err := compare.Text(&text, d, layout.Options{Width: 118}); err != nil {
		return err
	}
	c := diffContent{Writer: o.Writer, Style: template.CSS(styleText), Script: template.JS(script),
		StyleHash: hash(styleText), ScriptHash: hash(script), Answer: compare.Verdict(d),
		LevelName: "of " + phrase.LevelName(changed), Text: text.String(), Traces: layout.ShellWord(d.Base.Path) + " " +
			layout.ShellWord(d.New.Path), Names: visible.Text(d.Base.Path) + " → " + visible.Text(d.New.Path)}
	c.Title = "memtrace: " + c.Names
	for _, side := range []struct {
		name string
		of   diff.Side
		s    *report.Summary
	}{{"base", d.Base, base}, {"new", d.New, changed}} {
		facts := render.Facts(side.s)
		c.Facts = append(c.Facts, layout.Fact{Name: side.name, Value: visible.Text(side.of.Path) + ": " +
			facts[0].Value + " (" + facts[1].Value + ")"})
	}
	for _, note := range d.Notes {
		c.Notes = append(c.Notes, visible.Text(note))
	}
	for _, state := range []string{diff.StateNew, diff.StateGone, diff.StateGrew, diff.StateShrank, diff.StateSame} {
		c.States = append(c.States, diffStates[state])
	}
	c.drawBoth(base, changed)
	for _, l := range d.Levels {
		if name, peak := diffLevelName(&l, changed), &l.PeakBytes; l.Device == "all" || l.Level == "reserved" {
			c.Levels = append(c.Levels, diffLevel{name, layout.Bytes(peak.Base), layout.Bytes(peak.New),
				layout.SignedBytes(peak.Delta), percentOf(peak)})
		}
	}
	c.addGroups(d)
	if err := diffTemplate.Execute(w, &c); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

func diffLevelName(l *diff.Level, s *report.Summary) string {
	switch l.Level {
	case report.LevelFramework:
		return phrase.LevelName(s) + ", peak"
	case "reserved":
		return "reserved by it on device " + l.Device + ", peak"
	}
	return l.Level + ", peak"
}

func percentOf(c *diff.Change) string {
	if c.Percent == nil {
		return ""
	}
	return fmt.Sprintf("%+.1f%%", *c.Percent)
}

// drawBoth draws the main levels of both sides over each other, each from its beginning on, to one scale: by
// allocations and frees where all blocks are known, since waiting then takes no room, else by time.
func (c *diffContent) drawBoth(base, changed *report.Summary) {
	var outlines [2][]uint64 // the highest bytes of columns of the same width
	whole := func(s *report.Summary) bool {
		return s.History != nil && len(s.History.Blocks) > 0 && s.History.LeftOut == 0
	}
	switch {
	case whole(base) && whole(changed):
		events := max(len(base.History.Times), len(changed.History.Times))
		for i, s := range []*report.Summary{base, changed} {
			outlines[i] = outlineByEvents(s, events)
		}
		c.Words = fmt.Sprintf(
			"Both runs from their first allocation, over %s allocations and frees: the base as an area, the new run as a line.", layout.Count(uint64(events)))
	case len(base.Heights) > 0 && len(changed.Heights) > 0:
		var span int64
		for i, s := range []*report.Summary{base, changed} {
			h := &s.Heights[0]
			span, outlines[i] = max(span, h.WidthNS*int64(len(h.PeakBytes))), slices.Clone(h.PeakBytes)
		}
		for i, s := range []*report.Summary{base, changed} {
			outlines[i] = stretch(outlines[i], s.Heights[0].WidthNS, span)
		}
		c.Words = fmt.Sprintf("Both runs from their first allocation, over %s: the base as an area, the new run as a line.",
			layout.Duration(span))
	}
	if len(outlines[0]) == 0 || len(outlines[1]) == 0 {
		return
	}
	most := max(slices.Max(outlines[0]), slices.Max(outlines[1]), 1)
	c.Lines = []diffLine{{"base", outlinePath(outlines[0], most) + fmt.Sprintf("V%dH0Z", pictureHeight)},
		{"new", outlinePath(outlines[1], most)}}
	c.BasePeak, c.NewPeak = layout.Bytes(base.Main().PeakBytes), layout.Bytes(changed.Main().PeakBytes)
}

// outlineColumns is into how many columns an outline is divided.
const outlineColumns = 500

// outlineByEvents are the highest bytes of columns that share a number of events; a run with fewer has fewer columns.
func outlineByEvents(s *report.Summary, events int) []uint64 {
	own := len(s.History.Times)
	count := max(outlineColumns*own/events, 1)
	return newPast(s.History, 0).columns(0, float64(own), count, byEvents, make([]int, len(s.History.Owners)), 1).Total
}

// stretch gives columns of a width the share of a span that they take; together they are not wider.
func stretch(highs []uint64, width, span int64) []uint64 {
	high, low := bits.Mul64(outlineColumns, uint64(width)*uint64(len(highs))) // more than 64 bits in a run of 200 days
	columns, _ := bits.Div64(high, low, uint64(max(span, 1)))
	list := make([]uint64, max(columns, 1))
	for i := range list {
		first, behind := len(highs)*i/len(list), max(len(highs)*(i+1)/len(list), len(highs)*i/len(list)+1)
		list[i] = slices.Max(highs[first:behind])
	}
	return list
}

// outlinePath draws columns, each a five-hundredth of the picture's width.
func outlinePath(highs []uint64, most uint64) string {
	var path strings.Builder
	for n, bytes := range highs {
		y := pictureHeight - 2 - float64(bytes)/float64(most)*(pictureHeight-12)
		left, right := float64(n)*pictureWidth/outlineColumns, float64(n+1)*pictureWidth/outlineColumns
		fmt.Fprintf(&path, "%s%.1f %.1fL%.1f %.1f", map[bool]string{true: "M", false: "L"}[n == 0], left, y, right, y)
	}
	return path.String()
}

// addGroups lists the groupings of the main level, those that the text shows first.
func (c *diffContent) addGroups(d *diff.Diff) {
	rank := func(g *diff.Group) int {
		if i := slices.Index(d.By, g.By); i >= 0 {
			return i
		}
		return len(d.By)
	}
	var groups []*diff.Group
	for i := range d.Groups {
		if g := &d.Groups[i]; d.Verdict == nil || g.Level == d.Verdict.Level {
			groups = append(groups, g)
		}
	}
	slices.SortStableFunc(groups, func(a, b *diff.Group) int { return rank(a) - rank(b) })
	for i, g := range groups {
		c.Groups = append(c.Groups, diffGroupOf(g, fmt.Sprintf("%s-%d", g.By, i)))
	}
}

func diffGroupOf(g *diff.Group, id string) diffGroup {
	v := diffGroup{ID: id, By: visible.Text(g.By), Title: visible.Text(g.By)}
	counts, most := map[string]int{}, uint64(1)
	for i := range g.Rows {
		counts[g.Rows[i].State]++
		most = max(most, magnitude(g.Rows[i].PeakBytes.Delta))
	}
	var words []string
	for _, state := range []string{diff.StateNew, diff.StateGone, diff.StateGrew, diff.StateShrank, diff.StateSame} {
		words = append(words, fmt.Sprintf("%d %s", counts[state], strings.ToLower(diffStates[state].Word)))
	}
	v.Words = strings.Join(words, ", ") + "."
	for _, row := range widestRows(g.Rows) {
		state := diffStates[row.State]
		length := 50 * float64(magnitude(row.PeakBytes.Delta)) / float64(most)
		left := 50.0
		if row.PeakBytes.Delta < 0 {
			left -= length
		}
		was := ""
		if row.WasLine() > 0 {
			was = visible.Text(row.BaseKey)
		}
		v.Rows = append(v.Rows, diffRow{Name: visible.Text(row.Title()), Was: was,
			State: state.Word, Class: state.Class, Base: layout.Bytes(row.PeakBytes.Base),
			New:    layout.Bytes(row.PeakBytes.New),
			Change: layout.SignedBytes(row.PeakBytes.Delta), Left: fmt.Sprintf("%.2f", left),
			Width: fmt.Sprintf("%.2f", length)})
	}
	if hidden := len(g.Rows) - len(v.Rows); hidden > 0 {
		v.More = fmt.Sprintf("%s more rows changed less; memtrace diff --json has all.", layout.Count(uint64(hidden)))
	}
	return v
}

// widestRows are the rows that changed most, in the order of the difference.
func widestRows(rows []diff.Row) []diff.Row {
	if len(rows) <= maxDiffRows {
		return rows
	}
	sizes := make([]uint64, len(rows))
	for i := range rows {
		sizes[i] = magnitude(rows[i].PeakBytes.Delta)
	}
	slices.SortFunc(sizes, func(a, b uint64) int { return int(min(max(int64(b)-int64(a), -1), 1)) })
	least, list := sizes[maxDiffRows-1], []diff.Row{}
	for i := range rows {
		if magnitude(rows[i].PeakBytes.Delta) >= least && len(list) < maxDiffRows {
			list = append(list, rows[i])
		}
	}
	return list
}

func magnitude(n int64) uint64 { return uint64(max(n, -n)) }
