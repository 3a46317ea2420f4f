package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"memtrace/cuda"
	"memtrace/trace"
	"memtrace/trace/build"
)

// nvidia-smi --query-gpu=memory.used --format=csv -lms 10 writes a heading and then one value a line. Other columns
// may stand beside it: timestamp, index, uuid, name, memory.total. With format csv,noheader there is no heading.
//
//	memory.used [MiB]
//	3 MiB

const smiKind = "log of nvidia-smi"

var smiValue = regexp.MustCompile(`^[0-9]{1,15} MiB$`)

func isNvidiaSMI(file *io.SectionReader) bool {
	l := newLines(file)
	for seen := 0; seen < recognizedRows; {
		line, ok := l.next()
		if !ok {
			return seen > 0
		}
		text := strings.TrimSpace(string(line))
		switch {
		case l.long:
			return false
		case text == "":
		case seen == 0 && slices.ContainsFunc(splitSMI(text), isUsedColumn):
			return true
		case !smiValue.MatchString(text):
			return false
		default:
			seen++
		}
	}
	return true
}

func splitSMI(line string) []string {
	fields := strings.Split(line, ",")
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	return fields
}

func isUsedColumn(name string) bool { return strings.HasPrefix(name, "memory.used") }

// smiColumns are places in a line, -1 for a column that is not there.
type smiColumns struct{ used, total, time, device, name int }

func smiHeading(fields []string) (c smiColumns, ok bool) {
	find := func(prefixes ...string) int {
		for _, prefix := range prefixes {
			if i := slices.IndexFunc(fields, func(f string) bool {
				return f == prefix || strings.HasPrefix(f, prefix+" ")
			}); i >= 0 {
				return i
			}
		}
		return -1
	}
	c = smiColumns{find("memory.used"), find("memory.total"), find("timestamp"),
		find("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id"), find("name", "gpu_name")}
	return c, c.used >= 0
}

type smiImport struct {
	out      *build.Builder
	thread   trace.ThreadID
	columns  smiColumns
	interval int64
	devices  map[string]*smiDevice
	began    time.Time
	now      int64
	missing  int
	result   Result
}

// smiDevice is a device whose use is retold as blocks: a rise is an allocation, a fall frees the latest ones.
type smiDevice struct {
	index int16
	rows  int64
	used  uint64
	rises []smiRise
	begun bool
}

type smiRise struct {
	addr, size uint64
	tag        string
}

// Tags of what was in use when a log begins, and of what came later.
const (
	smiFirst = "at the first sample"
	smiLater = "after the first sample"
)

var errNoSMI = errors.New(
	"no line has a number of MiB; log it with: nvidia-smi --query-gpu=timestamp,index,memory.used --format=csv -lms 10")

func readNvidiaSMI(out *trace.Writer, file *io.SectionReader, o Options) (Result, error) {
	m := &smiImport{interval: o.Interval.Nanoseconds(), devices: map[string]*smiDevice{},
		columns: smiColumns{0, -1, -1, -1, -1},
		result:  Result{Kind: smiKind, Brief: "samples of whole devices; no owners, call stacks or blocks"}}
	m.out = build.New(out, trace.Info{KindKey: smiKind})
	m.thread = m.out.Thread("(whole devices)")
	l, cut, heading := newLines(file), false, false
	for {
		line, ok := l.next()
		if !ok {
			break
		}
		if len(bytes.TrimSpace(line)) == 0 && !l.long {
			continue
		}
		fields := splitSMI(string(line))
		// a log that is appended to has several
		if columns, ok := smiHeading(fields); ok && (!heading || columns == m.columns) {
			m.columns, heading = columns, true
			continue
		}
		if err := m.row(fields); err != nil {
			if cut = !l.ended && !l.long && len(m.devices) > 0; cut {
				break
			}
			return Result{}, l.bad(line, err)
		}
	}
	if l.err != nil {
		return Result{}, l.err
	}
	if len(m.devices) == 0 {
		return Result{}, errNoSMI
	}
	m.result.Lacks = m.lacks(cut)
	m.out.Until(m.now)
	return finish(m.out, m.result)
}

// row takes in a sample.
func (m *smiImport) row(fields []string) error {
	if len(fields) <= max(m.columns.used, m.columns.total, m.columns.time, m.columns.device, m.columns.name) {
		return errors.New("the line has fewer fields than the heading")
	}
	field := func(column int) string {
		if column < 0 {
			return ""
		}
		return fields[column]
	}
	value := field(m.columns.used)
	if strings.HasPrefix(value, "[") { // [N/A], [Unknown Error]
		m.missing++
		return nil
	}
	used, err := bytesOf(strings.TrimSuffix(value, "MiB"), mebibyte)
	if err != nil {
		return errors.New("the memory in use is not a number of MiB")
	}
	d, err := m.device(field(m.columns.device), field(m.columns.name), field(m.columns.total))
	if err != nil {
		return err
	}
	at := d.rows * m.interval
	if d.rows++; m.columns.time >= 0 {
		if at, err = m.time(field(m.columns.time)); err != nil {
			return err
		}
	}
	m.now = max(m.now, at)
	m.change(d, used)
	return nil
}

func (m *smiImport) time(text string) (int64, error) {
	t, err := time.Parse("2006/01/02 15:04:05.999", text)
	if err != nil {
		return 0, errors.New("the timestamp is not like 2020/04/22 13:37:00.123")
	}
	if m.began.IsZero() {
		m.began = t
	}
	return max(t.Sub(m.began).Nanoseconds(), 0), nil
}

const maxDevices = 256

func (m *smiImport) device(key, name, total string) (*smiDevice, error) {
	if d := m.devices[key]; d != nil {
		return d, nil
	}
	if len(m.devices) == maxDevices {
		return nil, fmt.Errorf("there are more than %d devices", maxDevices)
	}
	d := &smiDevice{index: int16(len(m.devices))}
	m.devices[key] = d
	size, _ := bytesOf(strings.TrimSuffix(total, "MiB"), mebibyte)
	if name == "" {
		name = "GPU"
	}
	m.out.Device(trace.Device{Index: d.index, Name: name, TotalBytes: size})
	return d, nil
}

// change retells that a device has so many bytes in use from now on.
func (m *smiImport) change(d *smiDevice, used uint64) {
	tag := smiLater
	if !d.begun {
		tag, d.begun = smiFirst, true
	}
	for d.used > used {
		last := d.rises[len(d.rises)-1]
		d.rises = d.rises[:len(d.rises)-1]
		m.emit(d, trace.EventFree, last)
		if d.used -= last.size; d.used < used {
			tag = last.tag // the rest of a rise stays what it was
		}
	}
	if used > d.used {
		rise := smiRise{firstAddress + d.used, used - d.used, tag}
		d.rises, d.used = append(d.rises, rise), used
		m.emit(d, trace.EventAlloc, rise)
	}
}

func (m *smiImport) emit(d *smiDevice, kind trace.EventKind, r smiRise) {
	m.out.Event(trace.Event{Kind: kind, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice, Device: d.index, Addr: r.addr,
		Size: r.size, Time: m.now, Thread: m.thread, Tag: m.out.String(r.tag)})
	m.result.Events++
}

func (m *smiImport) lacks(cut bool) []string {
	lacks := []string{
		"The log holds samples of what whole devices had in use, by whatever process: no blocks, no owners, no call stacks, and nothing that came and went between two samples. " +
			"Rises and falls stand for allocations and frees."}
	if m.columns.time < 0 {
		lacks = append(lacks, fmt.Sprintf("Its samples have no times: they are taken to be %v apart (--interval).",
			time.Duration(m.interval)))
	}
	if m.columns.device < 0 {
		lacks = append(lacks, "It does not say which device a sample is of: all count as one.")
	}
	if m.missing > 0 {
		lacks = append(lacks, fmt.Sprintf("Samples without a value were left out: %d.", m.missing))
	}
	if cut {
		lacks = append(lacks, "The last line is cut and was left out.")
	}
	return lacks
}
