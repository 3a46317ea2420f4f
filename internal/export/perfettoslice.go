package export

import (
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/trace"
)

// perfettoRange is a track of slices each of which ends with the next.
type perfettoRange struct {
	file   *perfettoFile
	parent perfettoTrack
	name   string
	rank   int

	track perfettoTrack
	open  bool
}

func (r *perfettoRange) next(time int64, name string) {
	if r.track == 0 {
		r.track = r.file.track(r.parent, r.name, r.rank)
	}
	r.close(time)
	r.file.begin(r.track, time, name)
	r.open = true
}

func (r *perfettoRange) close(time int64) {
	if r.open {
		r.file.end(r.track, time)
		r.open = false
	}
}

// perfettoNested is the maximum nesting of tags; the last one has the rest of the path.
const perfettoNested = 32

// perfettoTags are the tags of each thread, nested as recorded. A trace has a thread's tag at its allocations and
// frees: a slice goes from the first to the last of them.
type perfettoTags struct {
	file    *perfettoFile
	parent  perfettoTrack
	names   trace.Source
	threads map[trace.ThreadID]*perfettoThread
}

type perfettoThread struct {
	track perfettoTrack
	tag   trace.StringID
	parts []string
	last  int64
}

func (t *perfettoTags) event(e *trace.Event) {
	thread := t.threads[e.Thread]
	if thread == nil && e.Tag == 0 || e.Flags&trace.FlagLate != 0 {
		return
	}
	if thread == nil {
		if t.threads == nil {
			t.threads = make(map[trace.ThreadID]*perfettoThread)
		}
		name := "thread"
		if known, ok := t.names.Tables().Thread(e.Thread); ok {
			name = fmt.Sprintf("%s (%d)", known.Name, known.TID)
		}
		thread = &perfettoThread{track: t.file.track(t.parent, "Tags of "+name, rankSlices+10+len(t.threads))}
		t.threads[e.Thread] = thread
	}
	if thread.tag != e.Tag {
		thread.change(t.file, e.Time, t.names.Tables().String(e.Tag))
		thread.tag = e.Tag
	}
	thread.last = max(thread.last, e.Time)
}

// change ends the slices of the parts that the new path lacks, and begins those of its additional parts.
func (t *perfettoThread) change(file *perfettoFile, time int64, path string) {
	var parts []string
	if path != "" {
		parts = strings.SplitN(path, ".", perfettoNested)
	}
	same := 0
	for same < min(len(parts), len(t.parts)) && parts[same] == t.parts[same] {
		same++
	}
	for range t.parts[same:] {
		file.end(t.track, t.last)
	}
	for _, part := range parts[same:] {
		file.begin(t.track, max(time, t.last), part)
	}
	t.parts = parts
}

func (t *perfettoTags) close() {
	for _, thread := range t.threads {
		thread.change(t.file, thread.last, "")
	}
}

// finish writes what is known after reading the trace.
func (p *perfettoWatch) finish(s *report.Summary) {
	p.steps.close(s.Process.DurationNS)
	p.epochs.close(s.Process.DurationNS)
	p.tags.close()
	for i := range s.OOM.Events {
		e := &s.OOM.Events[i]
		notes := []perfettoNote{{name: "requested bytes", bytes: e.RequestedBytes}, {name: "outcome", text: e.Outcome},
			{name: "level", text: e.Level}}
		if e.Site != "" {
			notes = append(notes, perfettoNote{name: "site", text: e.Site})
		}
		p.file.instant(p.events, e.TimeNS, fmt.Sprintf("out of memory: %s", layout.Bytes(e.RequestedBytes)), notes...)
	}
	if main := s.Main(); main.PeakBytes > 0 {
		p.file.instant(p.events, main.PeakTimeNS, "peak: "+layout.Bytes(main.PeakBytes),
			perfettoNote{name: "bytes", bytes: main.PeakBytes})
	}
	p.iterations(s)
	if s.History != nil {
		p.phases(s.History)
		p.divide(s)
	}
}

// iterations writes those of a training loop, unless the steps are the same.
func (p *perfettoWatch) iterations(s *report.Summary) {
	t := s.Training
	if t == nil || t.IterationsBy == report.IterationsByNothing || t.IterationsBy == report.IterationsByStep {
		return
	}
	track := p.file.track(p.process, "Iterations", rankSlices+1)
	for i := range t.Iterations {
		it := &t.Iterations[i]
		name := fmt.Sprintf("iteration %d", it.Number)
		if !it.Ended {
			name = "after the last iteration"
		}
		p.file.slice(track, it.StartNS, it.EndNS, name, perfettoNote{name: "peak bytes", bytes: it.Peak.Bytes},
			perfettoNote{name: "peak in", text: it.Peak.Phase})
	}
}

// phases writes which part of a training program allocated, from its first allocation in a row to its last.
func (p *perfettoWatch) phases(h *report.History) {
	by := slices.Index(h.By, "phase")
	if by < 0 {
		return
	}
	var track perfettoTrack
	phase, from, to := "", int64(0), int64(0)
	end := func() {
		if phase != "" && phase != "other" {
			if track == 0 {
				track = p.file.track(p.process, "Phases", rankSlices+2)
			}
			p.file.slice(track, from, to, phase)
		}
	}
	for _, b := range h.Blocks {
		at := h.Times[b.Born]
		if key := h.Owners[b.Owner].Keys[by]; key != phase {
			end()
			phase, from = key, max(at, to)
		}
		to = max(to, at)
	}
	end()
}
