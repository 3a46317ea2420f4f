// Package page writes a report as one HTML file that needs no network and no other file: the content of the text
// report, and the blocks themselves, which readers can inspect at any moment. Its script may make no requests, which
// the page's own Content-Security-Policy enforces, and shows names as text only. For traces that are too large for a
// file, and for runs that go on, a server on this machine shows the same page.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
	"memtrace/internal/render/oomtext"
)

// DefaultBlocks is the default number of blocks of a page: some 1.5 MB of file.
const DefaultBlocks = 200_000

// Options select the content of the page besides the summary.
type Options struct {
	Path   string // of the trace, for commands
	Writer string // the program and its version

	// Of a page that a program serves: which state of the trace it shows, and whether it answers questions about the
	// blocks instead of putting them on the page.
	Served string
	Remote bool
}

//go:embed page.html
var pageText string

//go:embed style.css
var styleRules string

var styleText = coloured(styleRules)

//go:embed script
var scripts embed.FS

// scriptOrder is the order of the parts of the page's script: code used during loading comes first.
var scriptOrder = []string{"words", "model", "unpack", "lanes", "segments", "source", "elements", "theme", "picture",
	"tables", "stacks", "mapview", "refresh", "view"}

// scriptText is one script of the parts.
func scriptText(parts []string) string {
	var b strings.Builder
	b.WriteString("(() => {\n")
	for _, name := range parts {
		text, err := scripts.ReadFile("script/" + name + ".js")
		if err != nil {
			panic(err) // they are part of this program
		}
		b.Write(text)
	}
	b.WriteString("})();\n")
	return b.String()
}

var pageTemplate = parsed("page", pageText)

// content is the data of the template.
type content struct {
	head
	Command  string
	Data     template.JS
	Sections template.HTML // of columns

	Figures   []figure
	Answer    string
	Alarm     bool
	Sentences []string
	Facts     []layout.Fact
	Advice    []string

	Timeline      bool
	LevelName     string
	TimelineWords string
	TimelinePath  string // of an SVG of 1000 by 260
	LeftOut       string

	Ledgers  []ledger
	Tables   []table
	OOM      []layout.Sheet
	Sheets   []layout.Sheet
	Notes    []string
	Text     string
	Commands []layout.Fact // Value is the command, Name what it shows
}

type ledger struct {
	Title, By string
	Rows      []row
}

type table struct {
	Title, More string
	Head        []string
	Rows        []row
	Static      bool // the script shows the same
}

type row struct {
	Name, Bytes, Share string
	Cells              []string
	Width              string // of its bar, in hundredths of the longest one
	Idle               bool
}

// Write writes the page of a summary, which must have Sites, and Training and History if the trace has them. The same
// summary gives the same bytes.
func Write(w io.Writer, s *report.Summary, o Options) error {
	d, packed, err := dataOf(s, o)
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	data, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	var text bytes.Buffer
	if err := render.Text(&text, s, layout.Options{Details: true, Width: 118, Path: o.Path}); err != nil {
		return err
	}
	answer, facts := render.Verdict(s), render.Facts(s)
	command := facts[0].Value
	c := content{head: newHead(command, o.Writer, scriptText(scriptOrder)), Command: command, Data: template.JS(data),
		Sections: packed.elements(), Figures: figures(s), Facts: facts[1:], Advice: render.Advice(s),
		Notes: render.Notes(s), Text: text.String(), LevelName: "of " + layout.LevelName(s), Commands: commands(s, o)}
	for _, sheet := range oomtext.Sheets(s, ownerRows) {
		if len(sheet.Fields)+len(sheet.Rows) > 0 || len(c.Advice) == 0 { // otherwise advice, which is shown above
			c.OOM = append(c.OOM, sheet)
		}
	}
	c.Sheets = append(render.DeviceSheets(s, ownerRows), render.ParameterSheets(s, parameterRows)...)
	if o.Served != "" {
		c.Connect = "; connect-src 'self'"
	}
	if len(answer) > 0 {
		c.Answer, c.Sentences = answer[0], answer[1:]
	}
	c.Alarm = s.OOM.Count > 0 || s.Bounds != nil
	c.drawTimeline(s, &d)
	c.listOwners(s)
	c.listIterations(s)
	if err := pageTemplate.Execute(w, &c); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// hash is a source of a Content-Security-Policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

const (
	pictureWidth  = 1000
	pictureHeight = 260
)

// drawTimeline draws the main level as an area, for readers without scripts and for print.
func (c *content) drawTimeline(s *report.Summary, d *data) {
	if len(s.Heights) == 0 || len(s.Heights[0].PeakBytes) == 0 || s.History == nil || len(s.History.Blocks) == 0 {
		return
	}
	heights := shownHeights(&s.Heights[0], d.From, d.To)
	most := max(slices.Max(heights), 1)
	var path strings.Builder
	fmt.Fprintf(&path, "M0 %d", pictureHeight)
	for i, bytes := range heights {
		y := pictureHeight - float64(bytes)/float64(most)*(pictureHeight-10)
		fmt.Fprintf(&path, "L%.1f %.1fL%.1f %.1f", float64(i)*pictureWidth/float64(len(heights)), y, float64(i+1)*
			pictureWidth/float64(len(heights)), y)
	}
	fmt.Fprintf(&path, "L%d %dZ", pictureWidth, pictureHeight)
	c.Timeline, c.TimelinePath = true, path.String()
	main := s.Main()
	c.TimelineWords = fmt.Sprintf("%s over time: %s at the peak, %s into the run of %s; %s at the end.",
		layout.LevelName(s), layout.Bytes(main.PeakBytes),
		layout.Duration(main.PeakTimeNS), layout.Duration(s.Process.DurationNS), layout.Bytes(main.LiveBytes))
	switch {
	case d.From > d.Begin:
		c.TimelineWords += fmt.Sprintf(" The picture shows %s to %s: before and after that, memory does not change.",
			layout.Moment(d.From), layout.Moment(d.To))
	case d.To < d.End:
		c.TimelineWords += fmt.Sprintf(" The picture ends at %s: after that, memory does not change.",
			layout.Moment(d.To))
	}
	if d.Unit > 1 {
		c.LeftOut = fmt.Sprintf("Of so many blocks, times are rounded down to %s; memtrace serve shows them exactly. ",
			layout.Duration(d.Unit))
	}
	if !d.Remote && d.Places == 0 && len(s.History.Segments) > 0 {
		c.LeftOut += "The map of the allocator's memory would take too much room and is left out; memtrace serve shows it. "
	}
	if h := s.History; h.LeftOut > 0 {
		c.LeftOut += fmt.Sprintf(
			"Blocks that held most for longest are on the page, %s in number; %s smaller or shorter ones are part of the outline only (memtrace html --blocks holds more).",
			layout.Count(uint64(len(h.Blocks))), layout.Count(h.LeftOut))
	}
}

const (
	ownerRows     = 12
	parameterRows = 24
	tableRows     = 10
	iterationRows = 14
)

func (c *content) listOwners(s *report.Summary) {
	for _, by := range s.By {
		l := s.Ledger(by)
		if l == nil || len(l.Rows) == 0 {
			continue
		}
		c.Ledgers = append(c.Ledgers, ledger{Title: "Who held it at the peak", By: by,
			Rows: rowsOf(render.Owners(s, l, ownerRows))})
	}
	add := func(title, by string, static bool, owners []render.Owner) {
		if len(owners) == 0 {
			return
		}
		t := table{Title: title, Head: []string{by, "bytes", "share"}, Rows: rowsOf(owners), Static: static}
		for i := range t.Rows {
			t.Rows[i].Cells = []string{t.Rows[i].Bytes, t.Rows[i].Share}
		}
		c.Tables = append(c.Tables, t)
	}
	add("What it was for at the peak", "category", c.Timeline, render.PeakCategories(s, tableRows))
	add("By module at the peak", "module", false, render.PeakModules(s, tableRows))
}

// listIterations shows the first and the last iterations of a training program.
func (c *content) listIterations(s *report.Summary) {
	t := s.Training
	if t == nil || t.IterationsBy == report.IterationsByNothing || len(t.Iterations) < 2 {
		return
	}
	list := t.Iterations
	v := table{Title: "Iterations", Head: []string{"iteration", "peak", "in", "at its end"}}
	if len(list) > iterationRows {
		v.More = fmt.Sprintf("the first and the last of %s", layout.Count(uint64(len(list))+t.LeftOut))
		list = append(slices.Clone(list[:iterationRows/2]), list[len(list)-iterationRows/2:]...)
	}
	var most uint64
	for i := range list {
		most = max(most, list[i].Peak.Bytes)
	}
	for i := range list {
		it := &list[i]
		var end uint64
		for _, bytes := range it.End {
			end += bytes
		}
		name := layout.Count(it.Number)
		if !it.Ended {
			name = "after the last"
		}
		v.Rows = append(v.Rows,
			row{Name: name, Cells: []string{layout.Bytes(it.Peak.Bytes), it.Peak.Phase, layout.Bytes(end)},
				Width: width(it.Peak.Bytes, most)})
	}
	c.Tables = append(c.Tables, v)
}

func rowsOf(owners []render.Owner) []row {
	var most uint64
	for _, o := range owners {
		most = max(most, o.Bytes)
	}
	rows := make([]row, len(owners))
	for i, o := range owners {
		rows[i] = row{Name: o.Name, Bytes: layout.Bytes(o.Bytes), Share: o.Share, Width: width(o.Bytes, most),
			Idle: !o.Blocks}
	}
	return rows
}

func width(bytes, most uint64) string {
	return fmt.Sprintf("%.2f", 100*float64(bytes)/float64(max(most, 1)))
}

func commands(s *report.Summary, o Options) []layout.Fact {
	path := layout.ShellWord(o.Path)
	list := []layout.Fact{{Value: "memtrace report --details " + path, Name: "call stacks, device ledger, lifetimes"}}
	if s.OOM.Count > 0 {
		list = append(list, layout.Fact{Value: "memtrace report --at oom " + path,
			Name: "every table at the moment memory ran out"})
	}
	if s.Training != nil && s.Training.Modules != nil {
		list = append(list, layout.Fact{Value: "memtrace report --view modules " + path, Name: "by layer of the model"})
	}
	return append(list, layout.Fact{Value: "memtrace export flamegraph " + path, Name: "call stacks as a picture"},
		layout.Fact{Value: "memtrace diff " + path + " OTHER", Name: "what another run has more or less of"})
}
