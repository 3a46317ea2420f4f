package report

import "slices"

// Window is the requested part of the run, and the fate of its blocks. The levels' peaks and counts, and all tables,
// are those of the window.
type Window struct {
	WindowEnds
	Levels []WindowLevel `json:"levels"` // of those that were used up to the window's end, the framework first
}

// WindowEnds are the moments at the ends of a window.
type WindowEnds struct {
	From   string `json:"from"` // the moment as requested; "": the beginning of the run
	To     string `json:"to"`   // the same; "": its end
	FromNS int64  `json:"from_ns"`
	ToNS   int64  `json:"to_ns"`
}

// BlockSum counts blocks and their bytes.
type BlockSum struct {
	Count uint64 `json:"count"`
	Bytes uint64 `json:"bytes"`
}

// Add counts one more block.
func (s *BlockSum) Add(size uint64) {
	s.Count++
	s.Bytes += size
}

func (s *BlockSum) plus(o BlockSum) {
	s.Count += o.Count
	s.Bytes += o.Bytes
}

// WindowBlocks divides blocks by when they began and ended. Those at the start are Freed and Kept, those at the end are
// Kept and New.
type WindowBlocks struct {
	Start BlockSum `json:"start"` // live when the window began
	Freed BlockSum `json:"freed"` // of these, freed in it
	Kept  BlockSum `json:"kept"`  // of these, live when it ended
	New   BlockSum `json:"new"`   // allocated in it, and live when it ended
	End   BlockSum `json:"end"`   // live when it ended
}

// Plus adds the blocks of another key or origin.
func (b *WindowBlocks) Plus(o *WindowBlocks) {
	b.Start.plus(o.Start)
	b.Freed.plus(o.Freed)
	b.Kept.plus(o.Kept)
	b.New.plus(o.New)
	b.End.plus(o.End)
}

// Close completes what was counted as freed, kept and new.
func (b *WindowBlocks) Close() {
	b.Start, b.End = b.Kept, b.Kept
	b.Start.plus(b.Freed)
	b.End.plus(b.New)
}

// WindowLevel is one level in the window.
type WindowLevel struct {
	Level string `json:"level"`
	WindowBlocks
	Passed BlockSum      `json:"passed"` // allocated and freed within the window
	Groups []WindowGroup `json:"groups"`
}

// WindowGroup divides a level's blocks by one grouping.
type WindowGroup struct {
	By   string      `json:"by"`
	Rows []WindowRow `json:"rows"` // those that hold most more than before first
}

// WindowRow is one key.
type WindowRow struct {
	Key   string `json:"key"`
	Label string `json:"label,omitempty"`
	WindowBlocks
}

// Change is by how many bytes the key holds more at the window's end than at its start.
func (r *WindowRow) Change() int64 { return int64(r.End.Bytes - r.Start.Bytes) }

// Level returns a level's part, nil if it was not used.
func (w *Window) Level(level string) *WindowLevel {
	for i := range w.Levels {
		if w.Levels[i].Level == level {
			return &w.Levels[i]
		}
	}
	return nil
}

// By returns the division by one grouping, nil if there is none.
func (l *WindowLevel) By(grouping string) *WindowGroup {
	for i := range l.Groups {
		if l.Groups[i].By == grouping {
			return &l.Groups[i]
		}
	}
	return nil
}

// EndNS is the end of the part that a summary covers: its window, or the run.
func (s *Summary) EndNS() int64 {
	if s.Window != nil {
		return s.Window.ToNS
	}
	return s.Process.DurationNS
}

// BeginNS is the beginning of the part that a summary covers.
func (s *Summary) BeginNS() int64 {
	if s.Window != nil {
		return s.Window.FromNS
	}
	return 0
}

// maxNamedMarks bounds the marks among the named moments.
const maxNamedMarks = 8

// NamedMoments are the moments that the program has made itself, as --at takes them: "oom", the first time that memory
// ran out for good, and "mark:NAME" for the first marks.
func (s *Summary) NamedMoments() (list []string) {
	if slices.ContainsFunc(s.OOM.Events, func(e OOMEvent) bool { return e.Outcome == OOMFailed }) {
		list = append(list, "oom")
	}
	for i := range s.Marks[:min(len(s.Marks), maxNamedMarks)] {
		if s.Marks[i].Name != "" {
			list = append(list, "mark:"+s.Marks[i].Name)
		}
	}
	return list
}
