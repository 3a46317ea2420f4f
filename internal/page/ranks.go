package page

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"path/filepath"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

//go:embed ranks.html
var ranksText string

var ranksTemplate = parsed("ranks", ranksText)

var ranksOrder = []string{"words", "unpack", "elements", "theme", "heat", "ranks"}

// RanksOptions select the content of the page of many ranks besides what was compared.
type RanksOptions struct {
	Names  string // of the files, as a command line has them
	Folder string // that the page is in, which its links begin in
	Writer string // the program and its version
	Unread []string
}

// ranksContent is the data of the template.
type ranksContent struct {
	head
	Names           string
	Data            template.JS
	Section         template.HTML
	Answer          string
	Sentences       []string
	Unread          []string
	Words, Columns  string // of the picture
	LevelName, Note string
	Parts           []rankPart
}

// rankPart is a part of the table.
type rankPart struct {
	Title      string
	Closed     bool // it is shown when it is opened
	Categories []string
	Rows       []rankLine
	members    []int
}

type rankLine struct {
	ID                     int
	Name, Address, Command string
	Mark, Host             string
	Cells                  []string
}

// maxUnread bounds the files that are named because they could not be read.
const maxUnread = 100

// WriteRanks writes the page of the processes of one run, of which there is at least one.
func WriteRanks(w io.Writer, r *diff.Ranks, o RanksOptions) error {
	h := heatOf(r)
	cells, err := h.pack()
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	data, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	sentences := append(render.RanksVerdict(r), render.Absent(r)...)
	names := sanitize.Text(o.Names)
	c := ranksContent{head: newHead(names, o.Writer, scriptText(ranksOrder)), Names: names, Data: template.JS(data),
		Section: binary{Columns: cells}.elements(), Answer: sentences[0], Sentences: sentences[1:],
		LevelName: "of " + layout.LevelName(r.Processes[r.Typical].Head.Summary)}
	for i, text := range o.Unread {
		if i == maxUnread {
			c.Unread = append(c.Unread, fmt.Sprintf("%s more files", layout.Count(uint64(len(o.Unread)-i))))
			break
		}
		c.Unread = append(c.Unread, sanitize.Text(text))
	}
	c.describe(h)
	if err := c.addTable(r, h, o.Folder); err != nil {
		return err
	}
	if err := ranksTemplate.Execute(w, &c); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// describe explains the picture.
func (c *ranksContent) describe(h *heat) {
	rows := layout.Plural(uint64(len(h.Names)), "process", "processes")
	if h.span != "" {
		c.Columns = "over time"
		c.Words = fmt.Sprintf("%s from top to bottom, %s from left to right.", rows, h.span)
		c.Note = "A cell is what the rank held at the highest moment of the iteration, or of several."
	} else {
		c.Columns = "at the peak of each"
		c.Words = fmt.Sprintf("%s from top to bottom, what their memory was for at the peak of each from left to right.",
			rows)
		c.Note = "The runs have no iterations: call memtrace.step() in the training loop to see them over time."
	}
	if unit := h.rounded(); unit > 1 {
		c.Note += fmt.Sprintf(" Sizes in the picture are rounded to %s.", layout.Bytes(unit))
	}
}

// few is of how many processes a group has no table of its own.
const few = 4

// addTable lists the processes: those that have rows of their own in a report first, then the others, by group.
func (c *ranksContent) addTable(r *diff.Ranks, h *heat, folder string) error {
	own, alike := render.RankParts(r)
	var parts, others []rankPart
	var rest []int
	for _, members := range alike {
		if len(members) < few {
			rest = append(rest, members...)
			continue
		}
		others = append(others, rankPart{Title: fmt.Sprintf("%s that are alike: %s",
			layout.Plural(uint64(len(members)), "process", "processes"), render.ProcessNames(r, members)), Closed: true,
			members: members})
	}
	if len(own) > 0 {
		parts = append(parts, rankPart{members: own})
	}
	if len(rest) > 0 {
		slices.Sort(rest)
		parts = append(parts, rankPart{Title: layout.Plural(uint64(len(rest)), "process that is like few others",
			"processes that are like few others"), Closed: len(rest) > maxDiffRows, members: rest})
	}
	for _, p := range append(parts, others...) {
		for _, k := range h.Kinds[1:] {
			p.Categories = append(p.Categories, k.Name)
		}
		for _, i := range p.members {
			line, err := lineOf(r, h, i, folder)
			if err != nil {
				return err
			}
			p.Rows = append(p.Rows, line)
		}
		c.Parts = append(c.Parts, p)
	}
	return nil
}

func lineOf(r *diff.Ranks, h *heat, i int, folder string) (line rankLine, err error) {
	p := &r.Processes[i]
	s := p.Head.Summary
	path, err := relative(folder, p.Path)
	if err != nil {
		return line, err
	}
	growth := map[string]string{report.GrowthNone: "none", report.GrowthUnknown: "not known"}[s.GrowthKind()]
	if list := s.Growing(); len(list) > 0 {
		if growth = layout.GrowthRate(list[0]); list[0].BytesPerIteration > 0 {
			growth = layout.Bytes(list[0].BytesPerIteration)
		}
	}
	line = rankLine{ID: i, Name: h.Names[i], Address: (&url.URL{Path: path}).String(), Mark: h.Marks[i],
		Command: "memtrace report " + layout.ShellWord(path),
		Cells:   []string{layout.Bytes(s.Main().PeakBytes), render.VsMedian(r, s.Main().PeakBytes), growth}}
	for _, kind := range h.peaks[1:] {
		cell := "-"
		if kind[i] > 0 {
			cell = layout.Bytes(kind[i] - 1)
		}
		line.Cells = append(line.Cells, cell)
	}
	line.Host = h.Hosts[h.Host[i]]
	return line, nil
}

// relative is the path of a file from a folder on.
func relative(folder, path string) (string, error) {
	from, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("write the page: %w", err)
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("write the page: %w", err)
	}
	return filepath.Rel(from, to)
}
