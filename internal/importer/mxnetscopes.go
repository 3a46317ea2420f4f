package importer

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"memtrace/trace"
)

// MXNet 2's profiler writes gpu_memory_profile-pid_N.csv: the blocks that were held when it was written, with a heading
// and sizes in bytes.
var scopesHeading = []string{"Attribute Name", "Requested Size", "Device", "Actual Size", "Reuse?"}

// scopesRow is a line of it: quotes in a name are not doubled.
var scopesRow = regexp.MustCompile(`^"(.*)","([^"]*)","([^"]*)","([^"]*)","([^"]*)"$`)

const (
	scopesKind  = "GPU memory profile of MXNet 2"
	scopesAmend = "nvml_amend" // not a block: what the process uses on the device beyond the blocks, by NVML
)

func isScopes(file *io.SectionReader) bool {
	line, ok := newLines(file).next()
	if !ok {
		return false
	}
	first, err := csv.NewReader(strings.NewReader(string(line))).Read()
	return err == nil && isHeading(first)
}

func isHeading(fields []string) bool {
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	return slices.Equal(fields, scopesHeading)
}

type scopesImport struct {
	rows   *rows
	held   map[int16]uint64
	amends int
	reused int
	cut    bool
}

func readScopes(out *trace.Writer, file *io.SectionReader, _ Options) (Result, error) {
	m := &scopesImport{rows: newRows(out, trace.Info{KindKey: scopesKind, "framework.mxnet": "(memory profile)"}),
		held: map[int16]uint64{}}
	l := newLines(file)
	line, _ := l.next()
	first, err := csv.NewReader(strings.NewReader(string(line))).Read()
	if err != nil || !isHeading(first) {
		return Result{},
			l.bad(line, fmt.Errorf("the heading of MXNet 2's memory profile is %q", strings.Join(scopesHeading, ",")))
	}
	for {
		line, ok := l.next()
		if !ok {
			break
		}
		if len(line) == 0 && !l.long {
			continue
		}
		err := m.row(string(line))
		if err != nil && !l.ended && !l.long {
			m.cut = true
			break
		}
		if err != nil {
			return Result{}, l.bad(line, err)
		}
	}
	switch {
	case l.err != nil:
		return Result{}, l.err
	case m.rows.events == 0:
		return Result{}, errors.New("the memory profile holds no block")
	}
	return m.rows.close(scopesKind, "one moment; no times, call stacks or addresses", m.lacks())
}

// row takes in a line.
func (m *scopesImport) row(line string) error {
	fields := scopesRow.FindStringSubmatch(line)
	if fields == nil {
		return fmt.Errorf("a row has %d fields in quotes, as the heading says", len(scopesHeading))
	}
	fields = fields[1:]
	device, err := deviceNumber(fields[2])
	if err != nil {
		return err
	}
	if strings.HasSuffix(fields[0], scopesAmend) {
		return m.amend(device, fields)
	}
	requested, err1 := wholeBytes(fields[1])
	actual, err2 := wholeBytes(fields[3])
	if err := errors.Join(err1, err2); err != nil {
		return errors.New("requested and actual size are numbers of bytes")
	}
	if fields[4] = strings.TrimSpace(fields[4]); fields[4] != "0" && !strings.EqualFold(fields[4], "false") {
		m.reused++
	}
	m.held[device] += actual
	return m.rows.block(fields[0], device, actual, &inPool{requested, m.held[device]})
}

// wholeBytes reads a number of bytes.
func wholeBytes(text string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if err == nil && n > maxBlock {
		err = errors.New("the size is more than any device has")
	}
	return n, err
}

// amend writes a sample of what the process uses on the device, of which the blocks before are a part.
func (m *scopesImport) amend(device int16, fields []string) error {
	written, err := strconv.ParseUint(strings.TrimSpace(fields[3]), 10, 64)
	more := int64(written) // MXNet subtracts without a sign
	used := int64(m.held[device]) + more
	if err != nil || more > maxBlock || more < -maxBlock || used < 0 {
		return errors.New("its size is not a number of bytes that a device has")
	}
	m.amends++
	m.rows.write(trace.Event{Kind: trace.EventSample, Device: device, Thread: m.rows.thread, Size: uint64(used),
		Allocated: uint64(used), Name: m.rows.out.String("exit")})
	return nil
}

// deviceNumber reads the number that a device's name ends with: 0, gpu(0), GPU 0.
func deviceNumber(text string) (int16, error) {
	text = strings.TrimRight(strings.TrimSpace(text), ") ")
	digits := text[len(strings.TrimRight(text, "0123456789")):]
	n, err := strconv.ParseUint(digits, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("the device %s is not a number from 0 to 255", quoteShort(text))
	}
	return int16(n), nil
}

func (m *scopesImport) lacks() []string {
	lacks := []string{
		"The profile lists the blocks that were held when it was written: no times (records are 1 µs apart), nothing that was freed before, no addresses, no call stacks, no threads. " +
			"Blocks that rest in MXNet's pool stand under their last owner. Figures are those of that moment, not of the peak."}
	if m.reused > 0 {
		lacks = append(lacks, fmt.Sprintf("Blocks that the pool had handed out before: %d.", m.reused))
	}
	if m.amends == 0 {
		lacks = append(lacks, "It does not say what the process used on the device beyond them.")
	}
	if m.cut {
		lacks = append(lacks, cutLine)
	}
	return lacks
}
