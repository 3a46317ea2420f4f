package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

//go:embed diff.html
var diffText string

var diffTemplate = parsed("diff", diffText)

var diffOrder = []string{"elements", "theme", "diff"}

// maxDiffRows bounds the rows of a table of a difference.
const maxDiffRows = 400

// diffContent is the data of the template of a difference.
type diffContent struct {
	head
	Names     string
	Answer    string
	Facts     []layout.Fact
	LevelName string
	Lines     []diffLine
	Across    []tick // of the picture's horizontal axis
	Up        []tick // of bytes
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

// diffState is the change of a row, as a word and a colour class.
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

// WriteDiff writes the page of a difference. The summaries are those that were compared.
func WriteDiff(w io.Writer, d *diff.Diff, base, changed *report.Summary, o Options) error {
	var text bytes.Buffer
	if err := render.DiffText(&text, d, layout.Options{Width: 118}); err != nil {
		return err
	}
	names := sanitize.Text(d.Base.Path) + " → " + sanitize.Text(d.New.Path)
	c := diffContent{head: newHead(names, o.Writer, scriptText(diffOrder)), Names: names,
		Answer: render.DiffVerdict(d), LevelName: "of " + layout.LevelName(changed), Text: text.String(),
		Traces: layout.ShellWord(d.Base.Path) + " " + layout.ShellWord(d.New.Path)}
	for _, side := range []struct {
		name string
		of   diff.Side
		s    *report.Summary
	}{{"base", d.Base, base}, {"new", d.New, changed}} {
		facts := render.Facts(side.s)
		c.Facts = append(c.Facts, layout.Fact{Name: side.name, Value: sanitize.Text(side.of.Path) + ": " +
			facts[0].Value + " (" + facts[1].Value + ")"})
	}
	for _, note := range d.Notes {
		c.Notes = append(c.Notes, sanitize.Text(note))
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
		return layout.LevelName(s) + ", peak"
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
	v := diffGroup{ID: id, By: sanitize.Text(g.By), Title: sanitize.Text(g.By)}
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
			was = sanitize.Text(row.BaseKey)
		}
		v.Rows = append(v.Rows, diffRow{Name: sanitize.Text(layout.KeyName(g.By, row.Title())), Was: was,
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
