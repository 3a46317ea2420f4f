package importer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"memtrace/cuda"
	"memtrace/trace"
)

// rows writes blocks of a file that has neither times nor addresses: each is a microsecond after the one before, at the
// next address.
type rows struct {
	out    *Builder
	thread trace.ThreadID
	next   uint64 // address
	time   int64
	sum    uint64
	events int
}

const (
	firstAddress = 1 << 32
	rowTime      = 1000 // nanoseconds from one record to the next
)

func newRows(out *trace.Writer, info trace.Info) *rows {
	r := &rows{out: NewBuilder(out, info), next: firstAddress}
	r.thread = r.out.Thread("(threads are unknown)")
	return r
}

// close ends the trace, which records what it was made from.
func (r *rows) close(kind, brief string, lacks []string) (Result, error) {
	return finish(r.out, Result{Kind: kind, Brief: brief, Events: r.events, Lacks: lacks})
}

// finish writes down what an import found and ends the trace. What was left out is shown on the first screen.
func finish(out *Builder, result Result) (Result, error) {
	if slices.ContainsFunc(result.Lacks, func(lack string) bool { return strings.Contains(lack, "left out") }) {
		result.Brief += "; some records were left out"
	}
	out.Info(trace.Info{KindKey: result.Kind, BriefKey: result.Brief, LacksKey: strings.Join(result.Lacks, " ")})
	return result, out.Close()
}

// counted is what an import found a number of times, as a sentence with a place for it.
type counted struct {
	count int
	text  string
}

// sentences are those of what was found at all.
func sentences(list ...counted) (found []string) {
	for _, c := range list {
		if c.count > 0 {
			found = append(found, fmt.Sprintf(c.text, c.count))
		}
	}
	return found
}

var errTooMuch = errors.New("the sizes add up to more than there are addresses")

// inPool marks a framework's block that fills a driver's block.
type inPool struct {
	request uint64 // bytes
	held    uint64 // bytes of all blocks on the device, this one included
}

// block writes an allocation of the driver's, and the framework's block in it, if there is one.
func (r *rows) block(tag string, device int16, size uint64, pool *inPool) error {
	if r.sum += size; r.sum > maxSum {
		return errTooMuch
	}
	e := trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice, Device: device,
		Addr: r.next, Size: size, Thread: r.thread, Tag: r.out.String(tag)}
	r.write(e)
	if pool != nil {
		e.Level, e.Allocated, e.Reserved = cuda.LevelFramework, pool.held, pool.held
		if pool.request <= size {
			e.Rest = 1 + size - pool.request
		}
		r.time -= rowTime // the same moment
		r.write(e)
	}
	r.next += (size + 511) / 512 * 512
	return nil
}

func (r *rows) write(e trace.Event) {
	e.Time = r.time
	r.out.Event(e)
	r.time += rowTime
	r.events++
}
