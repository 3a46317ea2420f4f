package importer

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"

	"memtrace/cuda"
	"memtrace/trace"
)

// jax.profiler.save_device_memory_profile writes a profile as pprof reads it: for each call stack the number of buffers
// or live executables and their bytes, with the labels kind and device.

const (
	jaxKind = "device memory profile of JAX"
	// maxProfile bounds a profile, which is read as a whole, in bytes.
	maxProfile = 256 << 20
	// maxParts bounds the blocks that a profile's samples are written as.
	maxParts = 1 << 22
)

func isJAX(file *io.SectionReader) bool {
	first := make([]byte, 1)
	if _, err := file.ReadAt(first, 0); err != nil || first[0] != 0x0a { // the first field: types of samples
		return false
	}
	p, err := parseProfile(file)
	if err != nil {
		return false
	}
	_, _, ok := jaxValues(p)
	return ok
}

func parseProfile(file *io.SectionReader) (*profile.Profile, error) {
	if file.Size() > maxProfile {
		return nil, fmt.Errorf("a profile of more than %d MiB", maxProfile>>20)
	}
	data := make([]byte, file.Size())
	if _, err := file.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read: %w", err)
	}
	p, err := profile.ParseUncompressed(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		return nil, fmt.Errorf("damaged or cut: %w", err)
	}
	return p, nil
}

// jaxValues finds which of a sample's values are the number and the bytes.
func jaxValues(p *profile.Profile) (count, space int, ok bool) {
	count, space = -1, -1
	for i, v := range p.SampleType {
		switch v.Type + "/" + v.Unit {
		case "allocations/count":
			count = i
		case "space/bytes":
			space = i
		}
	}
	return count, space, count >= 0 && space >= 0
}

type jaxImport struct {
	out     *Builder
	thread  trace.ThreadID
	devices map[string]int16
	taken   map[int16]bool
	held    map[int16]uint64
	next    uint64 // address
	sum     uint64
	average bool // blocks of one sample share its bytes
	result  Result
}

func readJAX(out *trace.Writer, file *io.SectionReader, _ Options) (Result, error) {
	p, err := parseProfile(file)
	if err != nil {
		return Result{}, err
	}
	count, space, ok := jaxValues(p)
	if !ok {
		return Result{}, errors.New("the profile is none of JAX's: it has no allocations in count and space in bytes")
	}
	m := &jaxImport{devices: map[string]int16{}, taken: map[int16]bool{}, held: map[int16]uint64{}, next: firstAddress,
		result: Result{Kind: jaxKind, Brief: "one moment; arrays and executables with their call stacks"}}
	info := trace.Info{KindKey: jaxKind, "framework.jax": "(device memory profile)"}
	if p.TimeNanos > 0 {
		info["clock.base_unix_ns"] = strconv.FormatInt(p.TimeNanos, 10)
	}
	m.out = NewBuilder(out, info)
	m.thread = m.out.Thread("(threads are unknown)")
	for i, s := range p.Sample {
		if err := m.sample(s, s.Value[count], s.Value[space]); err != nil {
			return Result{}, fmt.Errorf("sample %d: %w", i+1, err)
		}
	}
	if m.result.Events == 0 {
		return Result{}, errors.New("the profile holds no memory")
	}
	m.result.Lacks = []string{
		"The profile lists the arrays and executables that stood when it was written: nothing that was freed before, no times, no addresses, no threads, no buffers within a computation, and not what XLA's allocator holds from the device. Figures are those of that moment, not of the peak."}
	if m.average {
		m.result.Lacks = append(m.result.Lacks,
			"Of arrays with the same call stack it has the sum: each counts as an equal part.")
	}
	return finish(m.out, m.result)
}

// sample takes in what was allocated by one call stack.
func (m *jaxImport) sample(s *profile.Sample, count, space int64) error {
	switch {
	case count < 0 || space < 0:
		return errors.New("a number or a size is negative")
	case space == 0: // executables that have no memory of their own
		return nil
	case count == 0:
		return errors.New("bytes of no block")
	case space > maxBlock:
		return errors.New("the size is more than any device has")
	case count > space || int64(m.result.Events)+count > maxParts:
		return errors.New("more blocks than a device has room for")
	}
	if m.sum += uint64(space); m.sum > maxSum {
		return errTooMuch
	}
	device := m.device(label(s, "device"))
	e := trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Device: device,
		Thread: m.thread}
	if kind := label(s, "kind"); kind != "buffer" {
		e.Tag = m.out.String(kind)
	}
	e.Stack, e.PyStack = m.out.Stack(jaxFrames(s))
	m.average = m.average || count > 1
	for left := count; left > 0; left-- {
		e.Size = uint64(space / left)
		space -= int64(e.Size)
		m.held[device] += e.Size
		e.Addr, e.Allocated, e.Reserved = m.next, m.held[device], m.held[device]
		m.next += (e.Size + 511) / 512 * 512
		m.out.Event(e)
		m.result.Events++
	}
	return nil
}

func label(s *profile.Sample, key string) string {
	if values := s.Label[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// jaxFrames is a sample's call stack, innermost frame first.
func jaxFrames(s *profile.Sample) []BuilderFrame {
	var frames []BuilderFrame
	for _, location := range s.Location {
		for _, line := range location.Line {
			if line.Function != nil {
				frames = append(frames, BuilderFrame{File: line.Function.Filename, Function: line.Function.Name,
					Line: int32(min(max(line.Line, 0), 1<<30))})
			}
		}
	}
	return frames
}

// device numbers a device by what JAX calls it, such as gpu:1; without a name it is unknown.
func (m *jaxImport) device(name string) int16 {
	if name == "" {
		return -1
	}
	index, known := m.devices[name]
	if known {
		return index
	}
	_, number, _ := strings.Cut(name, ":")
	if n, err := strconv.ParseUint(number, 10, 8); err == nil {
		index = int16(n)
	}
	for m.taken[index] {
		index++
	}
	m.devices[name], m.taken[index] = index, true
	m.out.Device(trace.Device{Index: index, Name: name})
	return index
}
