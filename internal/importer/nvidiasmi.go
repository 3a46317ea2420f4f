package importer

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"memtrace/cuda"
	"memtrace/trace"
)

// nvidia-smi --query-gpu=memory.used --format=csv -lms 10 writes a heading and then one value a line. There may be
// other columns: timestamp, index, uuid, name, memory.total. With format csv,noheader there is no heading: then the
// only column is memory.used, or Options.Columns names all of them.
//
//	memory.used [MiB]
//	3 MiB

const smiKind = "log of nvidia-smi"

var (
	smiValue = regexp.MustCompile(`^[0-9][0-9.,' ]{0,20} MiB$`)
	// what only nvidia-smi writes into columns: times, names and addresses of devices, values with units
	smiField = regexp.MustCompile(`^(` + smiTime + `|(GPU|MIG)-[0-9a-f-]{8,}|[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-9]|` +
		`(NVIDIA|Tesla|GeForce|Quadro|GRID) .*|[0-9]+ (MiB|%|W|MHz|C)|\[(N/A|Not Supported|Unknown Error)\]|[0-9]{1,3})$`)
)

const smiTime = `[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?`

// isNvidiaSMI takes logs without a heading, too, if only to refuse them with what they lack.
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
		case seen == 0 && slices.ContainsFunc(splitSMI(text, separatorOf(text)), isUsedColumn):
			return true
		case smiValue.MatchString(text), smiField.MatchString(splitSMI(text, ",")[0]) && strings.Contains(text, ","):
			seen++
		case l.ended || seen == 0:
			return false
		}
	}
	return true
}

// separatorOf returns the separator of a heading's columns: programs that save tables again may write another one.
func separatorOf(heading string) string {
	for _, separator := range []string{";", "\t"} {
		if strings.Contains(heading, separator) {
			return separator
		}
	}
	return ","
}

// splitSMI returns the fields of a line, without blanks and quotes around them.
func splitSMI(line, separator string) []string {
	var fields []string
	for more := true; more; {
		var field string
		if rest, quoted := strings.CutPrefix(strings.TrimLeft(line, " "), `"`); quoted && strings.Contains(rest, `"`) {
			field, line, _ = strings.Cut(rest, `"`)
			_, line, more = strings.Cut(line, separator)
		} else {
			field, line, more = strings.Cut(line, separator)
		}
		fields = append(fields, strings.TrimSpace(field))
	}
	return fields
}

func isUsedColumn(name string) bool { return strings.HasPrefix(name, "memory.used") }

// smiColumns are places in a line, -1 for a column that is not there.
type smiColumns struct{ used, total, time, device, name, count int }

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
		find("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id"), find("name", "gpu_name"), len(fields)}
	return c, c.used >= 0
}

type smiImport struct {
	out       *Builder
	thread    trace.ThreadID
	columns   smiColumns
	separator string
	interval  int64
	devices   map[string]*smiDevice
	taken     map[int16]bool // numbers of devices
	began     time.Time
	now       int64
	units     bool // values have their unit
	rows      int
	missing   int // samples without a value
	backwards int // samples that are older than the one before
	result    Result
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

var (
	errNoSMI = errors.New("no line has a number of MiB; " +
		"log it with: nvidia-smi --query-gpu=timestamp,index,memory.used --format=csv -lms 10")
	errNoHeading = errors.New("no heading says which column is memory.used; log without noheader, or name the columns " +
		"as they were asked for, such as --columns timestamp,index,memory.used")
	errColumns = errors.New("--columns names no memory.used")
)

func readNvidiaSMI(out *trace.Writer, file *io.SectionReader, o Options) (Result, error) {
	m := &smiImport{interval: o.Interval.Nanoseconds(), devices: map[string]*smiDevice{}, taken: map[int16]bool{},
		columns: smiColumns{0, -1, -1, -1, -1, 1}, separator: ",",
		result: Result{Kind: smiKind, Brief: "samples of whole devices; no owners, call stacks or blocks"}}
	heading := len(o.Columns) > 0
	if heading {
		var ok bool
		if m.columns, ok = smiHeading(o.Columns); !ok {
			return Result{}, errColumns
		}
	}
	m.out = NewBuilder(out, trace.Info{KindKey: smiKind})
	m.thread = m.out.Thread("(whole devices)")
	l, cut := newLines(file), false
	for {
		line, ok := l.next()
		if !ok {
			break
		}
		text := strings.TrimSpace(string(line))
		if text == "" && !l.long {
			continue
		}
		// a log that is appended to has several
		separator := separatorOf(text)
		columns, ok := smiHeading(splitSMI(text, separator))
		if ok && (m.rows == 0 || columns == m.columns) {
			m.columns, m.separator, heading = columns, separator, true
			continue
		}
		if cut = !l.ended && !l.long && heading && !strings.HasSuffix(text, "MiB"); cut {
			break
		}
		err := m.line(text, heading)
		if cut = err != nil && !l.ended && !l.long && m.rows > 0; cut {
			break
		}
		if err != nil {
			return Result{}, l.bad(line, err)
		}
	}
	if l.err != nil {
		return Result{}, l.err
	}
	if m.rows == 0 {
		return Result{}, errNoSMI
	}
	m.result.Lacks = m.lacks(cut)
	m.out.Until(m.now)
	return finish(m.out, m.result)
}

// line takes in a sample. The separator may also occur in a number: 1,024 MiB.
func (m *smiImport) line(text string, heading bool) error {
	fields := splitSMI(text, m.separator)
	if !heading && len(fields) > 1 && !smiValue.MatchString(text) {
		return errNoHeading
	}
	if len(fields) > m.columns.count {
		switch {
		case m.columns.count == 1:
			fields = []string{strings.Trim(text, `"`)}
		case strings.Count(text, ", ") == m.columns.count-1:
			fields = splitSMI(text, ", ")
		default:
			return errors.New("the line has more fields than the heading; a comma in a number must not be the one between columns")
		}
	}
	if len(fields) < m.columns.count {
		return errors.New("the line has fewer fields than the heading")
	}
	return m.row(fields)
}

// row takes in a sample's fields.
func (m *smiImport) row(fields []string) error {
	field := func(column int) string {
		if column < 0 {
			return ""
		}
		return fields[column]
	}
	value, total := field(m.columns.used), uint64(0)
	if text := field(m.columns.total); text != "" && text[0] != '[' {
		var err error
		if total, _, err = mebibytes(text); err != nil {
			return errors.New("the memory of the device is not a number of MiB")
		}
	}
	d, err := m.device(field(m.columns.device), field(m.columns.name), total)
	if err != nil {
		return err
	}
	at := d.rows * m.interval
	if d.rows++; m.columns.time >= 0 {
		if at, err = m.time(field(m.columns.time)); err != nil {
			return err
		}
		if at < m.now {
			m.backwards++
		}
	}
	if strings.HasPrefix(value, "[") { // [N/A], [Unknown Error]
		m.missing++
		return nil
	}
	used, unit, err := mebibytes(value)
	switch {
	case err != nil:
		return err
	case m.units && !unit:
		return errors.New("the memory in use has no unit, unlike that of lines before")
	case total > 0 && used > total:
		return errors.New("more memory is in use than the device has")
	}
	m.units = unit
	m.rows++
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
	return t.Sub(m.began).Nanoseconds(), nil
}

// maxDevices bounds devices, and their numbers.
const maxDevices = 256

// device returns the device of a key, which is its number where the log has such a column.
func (m *smiImport) device(key, name string, total uint64) (*smiDevice, error) {
	if d := m.devices[key]; d != nil {
		return d, nil
	}
	if len(m.devices) == maxDevices {
		return nil, fmt.Errorf("there are more than %d devices", maxDevices)
	}
	d := &smiDevice{}
	if n, err := strconv.ParseUint(key, 10, 8); err == nil {
		d.index = int16(n)
	}
	for m.taken[d.index] {
		d.index++
	}
	m.devices[key], m.taken[d.index] = d, true
	if name == "" {
		name = "GPU"
	}
	m.out.Device(trace.Device{Index: d.index, Name: name, TotalBytes: total})
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

// deviceRoom is how far apart addresses of two devices begin, which have none in the file: more than a device has.
const deviceRoom = 2 * maxBlock

func (m *smiImport) emit(d *smiDevice, kind trace.EventKind, r smiRise) {
	m.out.Event(trace.Event{Kind: kind, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice, Device: d.index,
		Addr: uint64(d.index)*deviceRoom + r.addr, Size: r.size, Time: m.now, Thread: m.thread,
		Tag: m.out.String(r.tag)})
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
	if m.backwards > 0 {
		lacks = append(lacks, fmt.Sprintf(
			"Samples whose time is before that of the one above: %d; they count at the time of the latest one.",
			m.backwards))
	}
	if cut {
		lacks = append(lacks, cutLine)
	}
	return lacks
}
