package page

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// data is the script's input apart from the sections of columns.
type data struct {
	Events int      `json:"events"`
	Blocks int      `json:"blocks"`
	Unit   int64    `json:"unit"`   // nanoseconds that times in the columns are multiples of
	Sizes  []uint64 `json:"sizes"`  // that blocks have, in bytes
	Places int      `json:"places"` // addresses in the section of places; 0: there is none
	// born, died, address, size, device, and 1 if a block may reach into the next one
	Segments [][6]float64   `json:"segments"`
	By       []string       `json:"by"`
	First    int            `json:"first"` // of By, what the timeline is divided by at first
	Keys     [][]string     `json:"keys"`  // by By
	Owners   []owner        `json:"owners"`
	Frames   []frame        `json:"frames"`
	Levels   []level        `json:"levels"`
	Lanes    []lane         `json:"lanes"`
	Peak     int            `json:"peak"`      // event
	Begin    int64          `json:"begin"`     // nanoseconds
	End      int64          `json:"end"`       // the same
	From     int64          `json:"from"`      // the left end of the picture: memory changes from there on
	To       int64          `json:"to"`        // up to there
	PeakText string         `json:"peak_text"` // the level's, of which the page may miss blocks
	Growth   *growth        `json:"growth"`
	Own      map[string]int `json:"own"`   // names that have a colour of their own, and its number
	Older    int            `json:"older"` // events of blocks that are older than the window
	Command  string         `json:"command"`
	Path     string         `json:"path"`

	// Of a page that a program serves.
	Served    string `json:"served"` // which state of the trace it shows; "": the page is a file
	Live      bool   `json:"live"`   // the process still runs
	Remote    bool   `json:"remote"` // the blocks are not on the page: the program answers
	Crowded   bool   `json:"crowded"`
	Segmented bool   `json:"segmented"` // the server has segments
}

// growth is a line through what stays, which grows.
type growth struct {
	From      int64  `json:"from"`
	To        int64  `json:"to"`
	FromBytes uint64 `json:"from_bytes"`
	ToBytes   uint64 `json:"to_bytes"`
	Words     string `json:"words"`
}

type owner struct {
	Keys   []int `json:"k"` // by By: index of Keys
	Frames []int `json:"f"` // innermost first: index of Frames
}

type frame struct {
	Text string `json:"t"`
	User bool   `json:"u"`
}

// level is a line above the layers.
type level struct {
	Name  string   `json:"name"`
	Width int64    `json:"width"` // nanoseconds of an interval
	Bytes []uint64 `json:"bytes"` // highest in each
	From  int64    `json:"from"`  // when the first one begins
	Dash  []int    `json:"dash"`
}

type lane struct {
	Name   string   `json:"name"`
	Alarm  bool     `json:"alarm"`
	Phases []string `json:"phases,omitempty"` // that parts of items are numbers of
	Items  []item   `json:"items"`
}

type item struct {
	Name  string     `json:"name"`
	Title string     `json:"title"`
	From  int64      `json:"from"`
	To    *int64     `json:"to,omitempty"`    // none: a moment
	Parts [][2]int64 `json:"parts,omitempty"` // number of a phase, and how much of the item belongs to it
}

// binary is the sections of columns, by the id of their element.
type binary struct{ Columns, Places string }

// elements are the sections as elements, which the script opens when it needs them. Base64 needs no escaping.
func (b binary) elements() template.HTML {
	var text strings.Builder
	for _, section := range []struct{ id, text string }{{"columns", b.Columns}, {"places", b.Places}} {
		if section.text != "" {
			fmt.Fprintf(&text, "<script type=\"application/octet-stream\" id=\"%s\">%s</script>\n", section.id,
				section.text)
		}
	}
	return template.HTML(text.String())
}

// In a page of more than manyBlocks, times are in multiples of manyUnit nanoseconds, which makes it half as large.
const (
	manyBlocks = 1_000_000
	manyUnit   = 1000
)

// maxPlaces bounds the section of places; a program that allocates at ever new addresses has a longer one, which is
// left out.
const maxPlaces = 4 << 20

// unit is the resolution of times on the page.
func unit(h *report.History) int64 {
	if len(h.Blocks) > manyBlocks {
		return manyUnit
	}
	return 1
}

// dataOf returns what the script reads. Its JSON is safe inside of a script element: encoding/json escapes <, > and &.
func dataOf(s *report.Summary, o Options) (d data, b binary, err error) {
	d = data{Sizes: []uint64{}, Segments: [][6]float64{}, Owners: []owner{}, Frames: []frame{}, Levels: []level{},
		Lanes: []lane{}, Command: "memtrace report", Path: layout.ShellWord(o.Path), Served: o.Served,
		Live: s.Process.Ended == report.EndedRunning}
	h := s.History
	if h == nil || len(h.Blocks) == 0 {
		return d, b, nil
	}
	d.Events, d.Blocks = len(h.Times), len(h.Blocks)
	d.Older, d.Begin, d.End = h.Older(s), s.BeginNS(), max(s.EndNS(), h.Times[len(h.Times)-1])
	d.From, d.To = h.InMotion(s, d.Begin, d.End)
	d.Peak, d.PeakText, d.Own = peakEvent(h, s), layout.Bytes(s.Main().PeakBytes), layout.CategoryColors
	if from, to, grows := h.GrowthLine(s.Trend); grows {
		d.Growth = &growth{s.Trend.FromTimeNS, s.Trend.ToTimeNS, from, to, layout.GrowthRate(s.Trend)}
	}
	d.name(h, s)
	d.foldModules(h, s)
	d.levels(s)
	d.lanes(s)
	if d.Remote = o.Remote; d.Remote {
		d.Crowded, d.Segmented = crowded(h, d.To-d.From), len(h.Segments) > 0
		return d, b, nil
	}
	d.Unit = unit(h)
	if b.Columns, d.Sizes, err = packBlocks(h, d.Unit); err != nil {
		return d, b, err
	}
	if len(h.Segments) > 0 {
		if b.Places, d.Places, err = packPlaces(h); len(b.Places) > maxPlaces {
			b.Places, d.Places = "", 0
		} else {
			d.Segments = segmentRows(h)
		}
	}
	return d, b, err
}

// peakEvent is the event of the level's peak. If blocks are missing, their own highest moment may be another one.
func peakEvent(h *report.History, s *report.Summary) int {
	if h.LeftOut == 0 {
		return int(h.PeakEvent())
	}
	n, _ := slices.BinarySearch(h.Times, s.Main().PeakTimeNS+1)
	return max(n-1, 0)
}

func segmentRows(h *report.History) [][6]float64 {
	rows := make([][6]float64, len(h.Segments))
	for i, s := range h.Segments {
		rows[i] = [6]float64{float64(s.Born), float64(s.Died), float64(s.Addr), float64(s.Size), float64(s.Device)}
		if s.Joins {
			rows[i][5] = 1
		}
	}
	return rows
}

// crowded is the same as crowded of model.js.
func crowded(h *report.History, span int64) bool {
	early := len(h.Times) / 20
	return len(h.Times) > 20 && h.Times[len(h.Times)-1-early]-h.Times[early] < span/4
}

// name lists owners, keys and frames.
func (d *data) name(h *report.History, s *report.Summary) {
	d.By = h.By
	d.First = max(slices.Index(h.By, s.By[0]), 0)
	if i := slices.Index(h.By, "category"); i >= 0 && render.PeakCategories(s, 1) != nil {
		d.First = i
	}
	keys := make([]map[string]int, len(h.By))
	d.Keys = make([][]string, len(h.By))
	for i := range keys {
		keys[i], d.Keys[i] = make(map[string]int), []string{}
	}
	frames := make(map[frame]int)
	for _, o := range h.Owners {
		v := owner{Keys: []int{}, Frames: []int{}}
		for i, key := range o.Keys {
			v.Keys = append(v.Keys, number(keys[i], &d.Keys[i], sanitize.Text(layout.KeyName(h.By[i], key))))
		}
		for _, f := range o.Frames {
			v.Frames = append(v.Frames, number(frames, &d.Frames, frame{frameText(f), f.User}))
		}
		d.Owners = append(d.Owners, v)
	}
}

const (
	byModule     = "module"
	byEachModule = "each module"
)

// foldModules joins repeated modules, and keeps each of them as a separate grouping.
func (d *data) foldModules(h *report.History, s *report.Summary) {
	by := slices.Index(d.By, byModule)
	if by < 0 {
		return
	}
	held := make([]uint64, len(d.Keys[by]))
	for i := range h.Blocks {
		if b := &h.Blocks[i]; int(b.Born) <= d.Peak && d.Peak < int(b.Died) {
			held[d.Owners[b.Owner].Keys[by]] += b.Size
		}
	}
	groups := render.ModuleGroups(s, d.Keys[by], held, ownerRows)
	if slices.Equal(groups, d.Keys[by]) {
		return
	}
	d.By, d.Keys = append(slices.Clone(d.By), byEachModule), append(d.Keys, d.Keys[by])
	known, names := make(map[string]int), []string{}
	for i := range d.Owners {
		keys := &d.Owners[i].Keys
		*keys = append(*keys, (*keys)[by])
		(*keys)[by] = number(known, &names, groups[(*keys)[by]])
	}
	d.Keys[by] = names
}

// number is the index of a value in a list without doubles.
func number[T comparable](known map[T]int, list *[]T, value T) int {
	n, is := known[value]
	if !is {
		n = len(*list)
		known[value] = n
		*list = append(*list, value)
	}
	return n
}

func frameText(f report.StackFrame) string {
	text := f.Function
	if f.File != "" {
		text += "  " + f.File
		if f.Line > 0 {
			text += fmt.Sprintf(":%d", f.Line)
		}
	}
	return sanitize.Text(text)
}

// levels are the driver's bytes, and if blocks were left out all live bytes.
func (d *data) levels(s *report.Summary) {
	for i, h := range s.Heights {
		switch {
		case i > 0:
			d.Levels = append(d.Levels, level{"taken from the CUDA driver", h.WidthNS, h.PeakBytes, h.FromNS,
				[]int{4, 3}})
		case s.History.LeftOut > 0:
			d.Levels = append(d.Levels, level{"all blocks", h.WidthNS, h.PeakBytes, h.FromNS, []int{}})
		}
	}
}

// lanes are the lanes below the picture.
func (d *data) lanes(s *report.Summary) {
	for _, l := range layout.Lanes(s) {
		v := lane{Name: l.Name, Alarm: l.Name == layout.OutOfMemory, Items: []item{}}
		known := make(map[string]int)
		for _, i := range l.Items {
			one := item{Name: sanitize.Text(i.Name), Title: sanitize.Text(i.Title), From: i.FromNS}
			if !i.Moment {
				one.To = &i.ToNS
			}
			for _, p := range i.Parts {
				one.Parts = append(one.Parts, [2]int64{int64(number(known, &v.Phases, p.Phase)), p.NS})
			}
			v.Items = append(v.Items, one)
		}
		d.Lanes = append(d.Lanes, v)
	}
}
