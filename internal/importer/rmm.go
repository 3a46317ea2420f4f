package importer

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"memtrace/cuda"
	"memtrace/trace"
)

// RMM's logging_resource_adaptor (cpp/src/mr/detail/logging_resource_adaptor_impl.cpp) writes a line for each call:
//
//	Thread,Time,Action,Pointer,Size,Stream
//	20562,13:38:23.866477,allocate,0x302000000,1000,0
//
// The time is that of the day. Its manual shows seconds.

const (
	rmmKind    = "log of RMM"
	rmmHeading = "Thread,Time,Action,Pointer,Size,Stream"
)

func isRMM(file *io.SectionReader) bool {
	line, ok := newLines(file).next()
	return ok && strings.TrimSpace(string(line)) == rmmHeading
}

type rmmImport struct {
	out     *Builder
	threads map[string]trace.ThreadID
	live    map[uint64]uint64 // pointer -> size
	held    uint64
	began   time.Duration
	days    time.Duration // past midnight
	now     time.Duration
	timed   bool
	result  Result

	// lines that contradict earlier ones: an earlier time, frees of unknown blocks or of another size, allocations of
	// live blocks
	backwards, unknown, resized, taken int
}

func readRMM(out *trace.Writer, file *io.SectionReader, _ Options) (Result, error) {
	m := &rmmImport{threads: map[string]trace.ThreadID{}, live: map[uint64]uint64{},
		result: Result{Kind: rmmKind, Brief: "what RMM handed out; no call stacks, and not what its pools hold"}}
	m.out = NewBuilder(out, trace.Info{KindKey: rmmKind, "framework.rmm": "(log)"})
	l := newLines(file)
	if line, _ := l.next(); strings.TrimSpace(string(line)) != rmmHeading {
		return Result{}, l.bad(line, fmt.Errorf("the heading of RMM's log is %s", rmmHeading))
	}
	cut := false
	for {
		line, ok := l.next()
		if !ok {
			break
		}
		text := strings.TrimSpace(string(line))
		if text == "" && !l.long || text == rmmHeading { // concatenated logs
			continue
		}
		if cut = !l.ended && !l.long; cut {
			break
		}
		if err := m.line(strings.Split(text, ",")); err != nil {
			return Result{}, l.bad(line, err)
		}
	}
	switch {
	case l.err != nil:
		return Result{}, l.err
	case m.result.Events == 0:
		return Result{}, errors.New("the log holds no allocation")
	}
	m.result.Lacks = m.lacks(cut)
	return finish(m.out, m.result)
}

// line takes in a call.
func (m *rmmImport) line(fields []string) error {
	if len(fields) != strings.Count(rmmHeading, ",")+1 {
		return fmt.Errorf("a line has %d fields, as the heading says", strings.Count(rmmHeading, ",")+1)
	}
	addr, err := rmmNumber(fields[3])
	if err != nil {
		return errors.New("the pointer is not a number")
	}
	size, err := strconv.ParseUint(fields[4], 10, 64)
	if err != nil || addr+size < addr {
		return errors.New("the size is not a number of bytes")
	}
	stream, err := rmmNumber(fields[5])
	if err != nil {
		return errors.New("the stream is not a number")
	}
	if err := m.time(fields[1]); err != nil {
		return err
	}
	e := trace.Event{Kind: trace.EventAlloc, Addr: addr, Size: size, Stream: stream, Thread: m.thread(fields[0])}
	switch fields[2] {
	case "allocate":
		return m.allocate(&e)
	case "allocate failure":
		e.Status = 2 // cudaErrorMemoryAllocation
		m.emit(e)
	case "free", "deallocate":
		m.free(&e)
	default:
		return errors.New("the action is none of allocate, allocate failure and free")
	}
	return nil
}

// rmmNumber reads what C prints of pointers and streams.
func rmmNumber(text string) (uint64, error) {
	if text == "(nil)" {
		return 0, nil
	}
	return strconv.ParseUint(text, 0, 64)
}

func (m *rmmImport) allocate(e *trace.Event) error {
	if e.Size == 0 {
		return nil
	}
	if e.Size > maxBlock {
		return errors.New("the size is more than any device has")
	}
	if size, there := m.live[e.Addr]; there { // its free is missing
		m.taken++
		m.release(e, size)
	}
	m.live[e.Addr] = e.Size
	m.held += e.Size
	m.emit(*e)
	return nil
}

func (m *rmmImport) free(e *trace.Event) {
	size, there := m.live[e.Addr]
	switch {
	case !there && e.Size == 0:
		return
	case !there:
		m.unknown++
		return
	case size != e.Size:
		m.resized++
	}
	m.release(e, size)
}

func (m *rmmImport) release(by *trace.Event, size uint64) {
	e := *by
	e.Kind, e.Size = trace.EventFree, size
	delete(m.live, e.Addr)
	m.held -= size
	m.emit(e)
}

func (m *rmmImport) emit(e trace.Event) {
	e.Level, e.Mem, e.Time = cuda.LevelFramework, cuda.MemoryDevice, m.now.Nanoseconds()
	e.Allocated, e.Reserved = m.held, m.held
	m.out.Event(e)
	m.result.Events++
}

// time takes in a time of the day, which restarts at midnight, or seconds.
func (m *rmmImport) time(text string) error {
	at, err := timeOfDay(text)
	if err != nil {
		return err
	}
	if !m.timed {
		m.timed, m.began = true, at
	}
	at += m.days - m.began
	if at < m.now-12*time.Hour {
		m.days += 24 * time.Hour
		at += 24 * time.Hour
	}
	if at < m.now {
		m.backwards++
	}
	m.now = max(m.now, at)
	return nil
}

func timeOfDay(text string) (time.Duration, error) {
	if t, err := time.Parse("15:04:05.999999999", text); err == nil {
		return t.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)), nil
	}
	if !strings.Contains(text, ":") {
		if at, err := time.ParseDuration(text + "s"); err == nil && at >= 0 {
			return at, nil
		}
	}
	return 0, errors.New("the time is not like 13:38:23.866477")
}

func (m *rmmImport) thread(text string) trace.ThreadID {
	id, known := m.threads[text]
	if !known {
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			id = m.out.ThreadOf(int32(n))
		} else {
			id = m.out.Thread("thread " + text)
		}
		m.threads[text] = id
	}
	return id
}

func (m *rmmImport) lacks(cut bool) []string {
	lacks := []string{"The log lists what RMM handed out, by requested sizes: not what a pool beneath it holds from the device, no other memory, no call stacks. " +
		"It does not say which device it is of (the file's name does: dev0); all counts as device 0."}
	lacks = append(lacks, sentences(
		counted{m.unknown, "Frees of blocks that the log does not allocate were left out: %d; it begins late."},
		counted{m.resized, "Frees with another size than the allocation: %d; the allocation's counts."},
		counted{m.taken, "Allocations at addresses whose free is missing: %d; the block before counts as freed then."},
		counted{m.backwards, "Lines whose time is before that of the one above: %d; they count at the time of the latest one."})...)
	if cut {
		lacks = append(lacks, cutLine)
	}
	return lacks
}
