package page

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/render"
	"memtrace/analyzer/report"
)

// data is what the script reads. Blocks are columns, packed: see unpack in model.js.
type data struct {
	Events  int        `json:"events"`
	Blocks  int        `json:"blocks"`
	Columns string     `json:"columns"` // base64 of what deflate made of the columns
	By      []string   `json:"by"`
	First   int        `json:"first"` // of By, what the timeline is divided by at first
	Keys    [][]string `json:"keys"`  // by By
	Owners  []owner    `json:"owners"`
	Frames  []frame    `json:"frames"`
	Levels  []level    `json:"levels"`
	Lanes   []lane     `json:"lanes"`
	Peak    int        `json:"peak"`  // event
	Begin   int64      `json:"begin"` // nanoseconds
	End     int64      `json:"end"`   // the same
	Older   int        `json:"older"` // events that stand for blocks that are older than the window
	Command string     `json:"command"`
	Path    string     `json:"path"`
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
	Width int64    `json:"width"` // nanoseconds of a stretch
	Bytes []uint64 `json:"bytes"` // highest in each
	From  int64    `json:"from"`  // when the first one begins
	Dash  []int    `json:"dash"`
}

type lane struct {
	Name  string `json:"name"`
	Alarm bool   `json:"alarm"`
	Items []item `json:"items"`
}

type item struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	From  int64  `json:"from"`
	To    *int64 `json:"to,omitempty"` // none: a moment
}

// laneItems bounds the items of a lane.
const laneItems = 2000

// dataOf returns JSON that is safe inside of a script element: encoding/json escapes <, > and &.
func dataOf(s *report.Summary, o Options) ([]byte, error) {
	d := data{Owners: []owner{}, Frames: []frame{}, Levels: []level{}, Lanes: []lane{}, Command: "memtrace report", Path: render.Path(o.Path)}
	if h := s.History; h != nil && len(h.Blocks) > 0 {
		columns, err := pack(h)
		if err != nil {
			return nil, err
		}
		d.Events, d.Blocks, d.Columns = len(h.Times), len(h.Blocks), columns
		d.Older, d.Begin, d.End = h.Older(s), s.BeginNS(), max(s.EndNS(), h.Times[len(h.Times)-1])
		d.Peak = peakEvent(h)
		d.name(h, s)
		d.levels(s)
		d.lanes(s)
	}
	return json.Marshal(d)
}

// pack compresses the columns of a history's blocks.
func pack(h *report.History) (string, error) {
	var raw bytes.Buffer
	times, sizes := make([]float64, len(h.Times)), make([]float64, len(h.Blocks))
	born, died, owners := make([]uint32, len(h.Blocks)), make([]uint32, len(h.Blocks)), make([]uint32, len(h.Blocks))
	for i, t := range h.Times {
		times[i] = float64(t)
	}
	for i, b := range h.Blocks {
		sizes[i], born[i], died[i], owners[i] = float64(b.Size), b.Born, b.Died, b.Owner
	}
	for _, column := range []any{times, sizes, born, died, owners} {
		if err := binary.Write(&raw, binary.LittleEndian, column); err != nil {
			return "", err
		}
	}
	var packed bytes.Buffer
	compression := flate.BestCompression
	if raw.Len() > 16<<20 { // which takes minutes then
		compression = flate.DefaultCompression
	}
	w, err := flate.NewWriter(&packed, compression)
	if err != nil {
		return "", err
	}
	if _, err := w.Write(raw.Bytes()); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), nil
}

// peakEvent is the first event behind which most is live.
func peakEvent(h *report.History) int {
	change := make([]int64, len(h.Times)+1)
	for _, b := range h.Blocks {
		change[b.Born] += int64(b.Size)
		change[b.Died] -= int64(b.Size)
	}
	best, live, most := 0, int64(0), int64(0)
	for i := range h.Times {
		if live += change[i]; live > most {
			most, best = live, i
		}
	}
	return best
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
			v.Keys = append(v.Keys, number(keys[i], &d.Keys[i], render.Clean(key)))
		}
		for _, f := range o.Frames {
			v.Frames = append(v.Frames, number(frames, &d.Frames, frame{frameText(f), f.User}))
		}
		d.Owners = append(d.Owners, v)
	}
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
	return render.Clean(text)
}

// levels are what the driver gave out, and where blocks were left out all that was live.
func (d *data) levels(s *report.Summary) {
	for i, h := range s.Heights {
		switch {
		case i > 0:
			d.Levels = append(d.Levels, level{"taken from the CUDA driver", h.WidthNS, h.PeakBytes, h.FromNS, []int{4, 3}})
		case s.History.LeftOut > 0:
			d.Levels = append(d.Levels, level{"all blocks", h.WidthNS, h.PeakBytes, h.FromNS, []int{}})
		}
	}
}

// lanes are iterations, marks and moments at which memory ran out.
func (d *data) lanes(s *report.Summary) {
	if t := s.Training; t != nil && t.IterationsBy != report.IterationsByNothing {
		l := lane{Name: "iteration"}
		for i := range t.Iterations {
			it := &t.Iterations[i]
			if it.Ended && len(l.Items) < laneItems {
				l.Items = append(l.Items, item{fmt.Sprint(it.Number), fmt.Sprintf("iteration %d", it.Number), it.StartNS, &it.EndNS})
			}
		}
		d.Lanes = append(d.Lanes, l)
	}
	marks := lane{Name: "marks"}
	for _, m := range s.Marks {
		if len(marks.Items) < laneItems && !strings.HasPrefix(m.Name, "memtrace.") {
			marks.Items = append(marks.Items, item{Name: render.Clean(m.Name), From: m.FirstTimeNS})
		}
	}
	slices.SortFunc(marks.Items, func(a, b item) int { return int(min(max(a.From-b.From, -1), 1)) })
	ooms := lane{Name: "no memory", Alarm: true}
	for i := range s.OOM.Events {
		if e := &s.OOM.Events[i]; len(ooms.Items) < laneItems {
			ooms.Items = append(ooms.Items, item{Name: "", From: e.TimeNS})
		}
	}
	for _, l := range []lane{marks, ooms} {
		if l.Items != nil {
			d.Lanes = append(d.Lanes, l)
		}
	}
}
