package export

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/render/layout"
	"memtrace/trace"
)

// Perfetto writes a trace for Perfetto's viewer: bytes of each level and device as counters, with every change; for the
// level that reports put first also by category and by owner, the largest ones and the rest; iterations, phases, steps,
// epochs and tags as slices; marks and out-of-memory events as instants. Times count from the beginning of the trace.
// Packets are written as events are read, except for the divided counters, which consist of at most Count.HistoryBlocks
// blocks: those left out count as others.
func Perfetto(w io.Writer, run *Run, o Options) (*Written, error) {
	count := run.Count
	count.Sites, count.Training, count.HistoryBy = true, true, []string{"phase"}
	file := newPerfettoFile(w)
	var watch *perfettoWatch
	followed, err := run.followed(count, func(names trace.Source) analyzer.Watcher {
		watch = &perfettoWatch{file: file, names: names, narrowed: run.narrowed(), only: run.Count.Devices}
		return watch
	})
	if err != nil {
		return nil, err
	}
	defer followed.Close()
	s := followed.Summary
	watch.start()
	watch.finish(s)
	written := &Written{Summary: s, Words: amount(s.Main().PeakBytes, "peak", s.Main().PeakTimeNS)}
	if h := s.History; h != nil && h.LeftOut > 0 {
		written.Limits = append(written.Limits,
			fmt.Sprintf(
				"counters by category and owner know the %s blocks that held most for longest; %s others are under 'others' (--limit holds more)",
				layout.Count(uint64(len(h.Blocks))), layout.Count(h.LeftOut)))
	}
	return written, file.flush()
}

// Ranks of the tracks below the process.
const (
	rankLevels = iota + 1
	rankDivisions
	rankSlices = 100
)

// perfettoLevel is the subject of a counter of levels.
type perfettoLevel struct {
	account heap.Account
	kind    perfettoKind
	device  int16
}

type perfettoKind uint8

const (
	perfettoBlocks   perfettoKind = iota // live bytes of an account on a device
	perfettoAll                          // the same on all devices
	perfettoReserved                     // memory held by the framework's allocator, by its own counter
	perfettoUsed                         // used memory as the device reports it, for all processes
)

// ownMarks is the prefix of marks set by memtrace's own scripts.
const ownMarks = "memtrace."

// perfettoWatch writes what happens as it happens.
type perfettoWatch struct {
	watchNothing
	file     *perfettoFile
	names    trace.Source
	narrowed bool
	only     []int16

	process, levels, events perfettoTrack
	tracks                  map[perfettoLevel]*perfettoCounter
	several                 bool  // devices
	time                    int64 // of the latest counter; a viewer sorts by it, so that it must not decrease
	steps, epochs           perfettoRange
	tags                    perfettoTags
}

// perfettoCounter is a counter and its latest value.
type perfettoCounter struct {
	track perfettoTrack
	bytes uint64
}

// start writes the first tracks, once names are known.
func (p *perfettoWatch) start() {
	if p.process != 0 {
		return
	}
	who := report.ProcessOf(p.names.Info())
	command := who.Command
	if command == "" {
		command = "unknown program"
	}
	p.process = p.file.process(who.PID, command)
	p.levels = p.file.track(p.process, "Memory", rankLevels)
	p.events = p.file.track(p.process, "Marks and out-of-memory events", rankSlices)
	p.tracks = make(map[perfettoLevel]*perfettoCounter)
	p.several = len(p.names.Tables().Devices()) > 1
	p.steps = perfettoRange{file: p.file, parent: p.process, name: "Steps", rank: rankSlices + 3}
	p.epochs = perfettoRange{file: p.file, parent: p.process, name: "Epochs", rank: rankSlices + 4}
	p.tags = perfettoTags{file: p.file, parent: p.process, names: p.names}
}

// counter returns the counter of a level, which begins with the first value.
func (p *perfettoWatch) counter(l perfettoLevel) *perfettoCounter {
	c := p.tracks[l]
	if c == nil {
		c = &perfettoCounter{track: p.file.counter(p.levels, p.title(l), 8*int(l.account)+2*int(l.kind)+
			100*int(l.device+1))}
		p.tracks[l] = c
	}
	return c
}

// title names a counter.
func (p *perfettoWatch) title(l perfettoLevel) string {
	framework := layout.FrameworkName(report.Versions(p.names.Info()))
	name := layout.AccountName(l.account.String())
	switch {
	case l.account == heap.AccountDriver:
		name = "driver memory"
	case l.kind == perfettoReserved:
		name = "reserved by " + framework
	case l.kind == perfettoUsed:
		name = "in use, as the device reports it"
	case l.account == heap.AccountFramework:
		name = framework + " blocks"
	}
	switch {
	case l.kind == perfettoAll:
		return name + ", all devices"
	case l.device < 0:
		return name
	}
	return fmt.Sprintf("%s, device %d", name, l.device)
}

// change adds to the counters of a block's account.
func (p *perfettoWatch) change(b *heap.Block, time int64, by uint64) {
	p.start()
	p.time = max(p.time, time)
	levels := []perfettoLevel{{b.Account, perfettoBlocks, b.Device}, {b.Account, perfettoAll, -1}}
	if !p.several {
		levels = levels[:1]
	}
	for _, l := range levels {
		c := p.counter(l)
		c.bytes += by
		p.file.set(c.track, p.time, c.bytes)
	}
}

// Opened implements analyzer.Watcher.
func (p *perfettoWatch) Opened(_ uint32, b *heap.Block, e *trace.Event) { p.change(b, e.Time, b.Size) }

// Closed implements analyzer.Watcher.
func (p *perfettoWatch) Closed(_ uint32, b *heap.Block, e *trace.Event) { p.change(b, e.Time, -b.Size) }

// Event implements analyzer.Watcher.
func (p *perfettoWatch) Event(e *trace.Event) {
	p.start()
	switch e.Kind {
	case trace.EventAlloc, trace.EventFree:
		if e.Level == cuda.LevelFramework && e.Status == 0 && e.Reserved > 0 &&
			heap.AccountOf(e) == heap.AccountFramework {
			p.reported(perfettoReserved, e, e.Reserved)
		}
		p.tags.event(e)
	case trace.EventSample:
		p.reported(perfettoUsed, e, e.Size)
	case trace.EventStep:
		p.steps.next(e.Time, fmt.Sprintf("step %d", e.Count))
	case trace.EventEpoch:
		p.epochs.next(e.Time, fmt.Sprintf("epoch %d", e.Count))
	case trace.EventMark:
		if name := p.names.Tables().String(e.Name); !strings.HasPrefix(name, ownMarks) {
			p.file.instant(p.events, e.Time, name)
		}
	}
}

// reported sets the figure that an allocator or a device reports itself, which covers all its memory.
func (p *perfettoWatch) reported(kind perfettoKind, e *trace.Event, bytes uint64) {
	if p.narrowed || len(p.only) > 0 && !slices.Contains(p.only, e.Device) {
		return
	}
	c := p.counter(perfettoLevel{heap.AccountFramework, kind, e.Device})
	if c.bytes != bytes {
		c.bytes = bytes
		p.time = max(p.time, e.Time)
		p.file.set(c.track, p.time, bytes)
	}
}
