package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"memtrace/trace"
)

// The MXNet that TBD's memory profiler patches writes to standard error, among the program's other output:
//
//	[mem] Allocate 4128 bytes GPU memory (in_arg:fc1_weight).
//	[mem] 15500 MB GPU global memory free, total 16160 MB.
//	[mem] Release GPU memory.
var (
	logWord    = []byte("[mem] ")
	logAlloc   = regexp.MustCompile(`\[mem\] Allocate ([0-9]{1,20}) bytes GPU memory \((.*)\)\.`)
	logFree    = regexp.MustCompile(`\[mem\] ([0-9.]{1,20}) MB GPU global memory free, total ([0-9.]{1,20}) MB\.`)
	logRelease = []byte("[mem] Release GPU memory")
)

func isLog(file *io.SectionReader) bool {
	for l := newLines(file); ; {
		line, ok := l.next()
		if !ok {
			return false
		}
		if bytes.Contains(line, logWord) && logAlloc.Match(line) {
			return true
		}
	}
}

const logKind = "log of TBD's memory profiler for MXNet"

var errNoLog = errors.New(
	"no line says '[mem] Allocate N bytes GPU memory (TAG).', as the MXNet patched by TBD's memory profiler writes to standard error")

type logImport struct {
	rows     *rows
	releases int
	unread   int    // lines that begin like records
	total    uint64 // bytes of the device
}

func readLog(out *trace.Writer, file *io.SectionReader, _ Options) (Result, error) {
	g := &logImport{rows: newRows(out, trace.Info{KindKey: logKind})}
	l := newLines(file)
	allocations := 0
	for {
		line, ok := l.next()
		if !ok {
			break
		}
		if !bytes.Contains(line, logWord) {
			continue
		}
		made, err := g.line(line)
		if err != nil {
			return Result{}, l.bad(line, err)
		}
		allocations += made
	}
	switch {
	case l.err != nil:
		return Result{}, l.err
	case allocations == 0:
		return Result{}, errNoLog
	}
	return g.rows.close(logKind, "no times, frees, call stacks or addresses", g.lacks())
}

// line takes in a line with a record; made is 1 if that is an allocation.
func (g *logImport) line(line []byte) (made int, err error) {
	if m := logAlloc.FindSubmatch(line); m != nil {
		size, err := strconv.ParseUint(string(m[1]), 10, 64)
		if err != nil || size > maxBlock {
			return 0, errors.New("the size is more than any device has")
		}
		return 1, g.rows.block(string(m[2]), 0, size, nil)
	}
	if m := logFree.FindSubmatch(line); m != nil {
		free, err1 := bytesOf(string(m[1]), mebibyte)
		total, err2 := bytesOf(string(m[2]), mebibyte)
		if err1 == nil && err2 == nil && free <= total {
			g.sample(total-free, total)
			return 0, nil
		}
	}
	if bytes.Contains(line, logRelease) {
		g.releases++
	} else {
		g.unread++
	}
	return 0, nil
}

// sample writes what the device had in use, by whatever process.
func (g *logImport) sample(used, total uint64) {
	if g.total == 0 {
		g.total = total
		g.rows.out.Device(trace.Device{Name: "GPU", TotalBytes: total})
	}
	g.rows.write(trace.Event{Kind: trace.EventSample, Thread: g.rows.thread, Size: used, Flags: trace.FlagShareUnknown,
		Name: g.rows.out.String("period")})
}

func (g *logImport) lacks() []string {
	lacks := []string{
		"The log names what MXNet's pool took from the device: no times (records are 1 µs apart), no addresses, no call stacks, no threads, and one device for all.",
		"Sizes hold the 32 bytes that the pool adds to each request, and a block that the pool hands out again keeps its first tag."}
	if g.releases > 0 {
		lacks = append(lacks,
			fmt.Sprintf(
				"Releases name no block (%d of them), so nothing is freed here: figures are sums of all that was ever taken.", g.releases))
	} else {
		lacks = append(lacks, "Nothing was released in it.")
	}
	if g.unread > 0 {
		lacks = append(lacks, fmt.Sprintf("Lines with [mem] that could not be read were left out: %d.", g.unread))
	}
	return lacks
}
