package export

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/trace"
)

// BlocksSchema names the form of Blocks.
const BlocksSchema = "memtrace.blocks/1"

// blocksFile is the JSON of Blocks; docs/export.md has its fields.
type blocksFile struct {
	Schema      string        `json:"schema"`
	Level       string        `json:"level"`
	PID         int64         `json:"pid"`
	Ended       string        `json:"ended"`
	DurationNS  int64         `json:"duration_ns"`
	PeakBytes   uint64        `json:"peak_bytes"`
	LostRecords uint64        `json:"lost_records"`
	LeftOut     uint64        `json:"left_out"`
	By          []string      `json:"by"`
	Marks       []blocksMark  `json:"marks"`
	Owners      []blocksOwner `json:"owners"`
	TimesNS     []int64       `json:"times_ns"`
	Born        []uint32      `json:"born"`
	Died        []uint32      `json:"died"`
	Bytes       []uint64      `json:"bytes"`
	Requested   []uint64      `json:"requested"`
	Device      []int16       `json:"device"`
	Owner       []uint32      `json:"owner"`
}

type blocksMark struct {
	Name   string `json:"name"`
	TimeNS int64  `json:"time_ns"`
	Event  int    `json:"event"` // the number of events before it
}

type blocksOwner struct {
	Keys     []string `json:"keys"`
	Function string   `json:"function"` // of the innermost frame of the program's own code
	File     string   `json:"file"`
	Line     int      `json:"line"`
}

// Blocks writes every block of the level that reports put first as columns of JSON, with its owner, and the marks among
// them: the live bytes at an event, summed over the blocks, are exactly the level's, unless blocks are left out.
func Blocks(w io.Writer, run *Run, _ Options) (*Written, error) {
	count := run.Count
	count.Sites, count.Training = true, true
	marks := &markWatch{}
	followed, err := run.followed(count, func(names trace.Source) analyzer.Watcher {
		marks.names = names
		return marks
	})
	if err != nil {
		return nil, err
	}
	defer followed.Close()
	s := followed.Summary
	file := blocksFile{Schema: BlocksSchema, Level: s.MainLevel(), PID: s.Process.PID, Ended: s.Process.Ended,
		DurationNS: s.Process.DurationNS, PeakBytes: s.Main().PeakBytes, LostRecords: s.LostRecords,
		By: []string{}, Owners: []blocksOwner{}, TimesNS: []int64{}, Marks: []blocksMark{}}
	if h := s.History; h != nil {
		file.take(h)
	}
	for _, m := range marks.list {
		m.Event, _ = slices.BinarySearch(file.TimesNS, m.TimeNS+1)
		file.Marks = append(file.Marks, m)
	}
	if err := json.NewEncoder(w).Encode(&file); err != nil {
		return nil, fmt.Errorf("write blocks: %w", err)
	}
	written := &Written{Summary: s, Words: layout.Count(uint64(len(file.Born))) + " blocks"}
	if file.LeftOut > 0 {
		written.Limits = append(written.Limits, fmt.Sprintf(
			"%s blocks that held least for the shortest time are left out (--limit holds more)",
			layout.Count(file.LeftOut)))
	}
	return written, nil
}

// take turns a history into columns.
func (f *blocksFile) take(h *report.History) {
	f.LeftOut, f.By, f.TimesNS = h.LeftOut, h.By, h.Times
	if f.TimesNS == nil {
		f.TimesNS = []int64{}
	}
	f.Born, f.Died = make([]uint32, len(h.Blocks)), make([]uint32, len(h.Blocks))
	f.Bytes, f.Requested = make([]uint64, len(h.Blocks)), make([]uint64, len(h.Blocks))
	f.Device, f.Owner = make([]int16, len(h.Blocks)), make([]uint32, len(h.Blocks))
	for i, b := range h.Blocks {
		f.Born[i], f.Died[i], f.Bytes[i], f.Requested[i] = b.Born, b.Died, b.Size, b.Requested
		f.Device[i], f.Owner[i] = b.Device, b.Owner
	}
	for _, o := range h.Owners {
		owner := blocksOwner{Keys: o.Keys}
		if i := slices.IndexFunc(o.Frames, func(s report.StackFrame) bool { return s.User }); i >= 0 {
			owner.Function, owner.File, owner.Line = o.Frames[i].Function, o.Frames[i].Path, o.Frames[i].Line
		}
		f.Owners = append(f.Owners, owner)
	}
}

// markWatch keeps every mark of the program.
type markWatch struct {
	watchNothing
	names trace.Source
	list  []blocksMark
}

// Event implements analyzer.Watcher.
func (m *markWatch) Event(e *trace.Event) {
	if e.Kind != trace.EventMark {
		return
	}
	if name := m.names.Tables().String(e.Name); !strings.HasPrefix(name, ownMarks) {
		m.list = append(m.list, blocksMark{Name: name, TimeNS: e.Time})
	}
}
