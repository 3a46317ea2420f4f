package export

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"memtrace/analyzer"
	"memtrace/internal/symbol"
)

const speedscopeSchema = "https://www.speedscope.app/file-format-schema.json"

// speedscopeFrame is a function of the file's shared table.
type speedscopeFrame struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// Speedscope writes a file for speedscope: one sampled profile for each set and value, the one that the options name
// first. Weights are bytes, or a number of allocations.
func Speedscope(w io.Writer, sets []*analyzer.StackSet, o Options) error {
	var rows []analyzer.StackRow
	for _, set := range sets {
		rows = append(rows, set.Rows...)
	}
	shape := shaper(sets[0], o.NoLines)
	all := newSampler(rows, func(f *symbol.Frame) frame {
		shaped := shape(f)
		shaped.path = f.File
		return shaped
	})
	frames := make([]speedscopeFrame, len(all.frames))
	for i, f := range all.frames {
		frames[i] = speedscopeFrame{Name: f.function, File: f.path, Line: f.line}
		if f.origin == ofUser && f.file != "" { // its readers use the lines; the viewer shows names only
			frames[i].Name += " (" + f.place() + ")"
		}
	}
	out := &jsonWriter{out: bufio.NewWriter(w)}
	out.text(`{"$schema":`).value(speedscopeSchema)
	out.text(`,"exporter":`).value(o.Writer)
	out.text(`,"name":`).value(command(sets[0]))
	out.text(`,"activeProfileIndex":0,"shared":{"frames":`).value(frames)
	out.text(`},"profiles":[`)
	first := 0
	for i, set := range sets {
		part := &sampler{rows: set.Rows, stacks: all.stacks[first : first+len(set.Rows)], frames: all.frames}
		first += len(set.Rows)
		for k, value := range valuesFrom(o.Value) {
			if i+k > 0 {
				out.text(",")
			}
			out.profile(part, value, levelName(set)+" "+value.Words(set))
		}
	}
	out.text("]}\n")
	if err := out.flush(); err != nil {
		return fmt.Errorf("write the speedscope file: %w", err)
	}
	return nil
}

// valuesFrom lists all values, the wanted one first.
func valuesFrom(first Value) []Value {
	list := []Value{first}
	for v := range values {
		if Value(v) != first {
			list = append(list, Value(v))
		}
	}
	return list
}

// jsonWriter writes JSON piece by piece: samples are too many to be held twice. The buffer keeps the first error.
type jsonWriter struct {
	out *bufio.Writer
	err error
}

func (j *jsonWriter) text(s string) *jsonWriter {
	j.out.WriteString(s)
	return j
}

func (j *jsonWriter) value(v any) {
	data, err := json.Marshal(v)
	if err != nil && j.err == nil {
		j.err = err
	}
	j.out.Write(data)
}

func (j *jsonWriter) number(n uint64) {
	j.out.Write(strconv.AppendUint(j.out.AvailableBuffer(), n, 10))
}

func (j *jsonWriter) flush() error {
	if j.err != nil {
		return j.err
	}
	return j.out.Flush()
}

func (j *jsonWriter) profile(s *sampler, value Value, name string) {
	list, sum := s.samples(value)
	unit := "bytes"
	if value == Count {
		unit = "none"
	}
	j.text(`{"type":"sampled","name":`).value(name)
	j.text(`,"unit":`).value(unit)
	j.text(`,"startValue":0,"endValue":`).number(sum)
	j.text(`,"samples":[`)
	for i, sample := range list {
		j.comma(i).text("[")
		for k, id := range sample.frames {
			j.comma(k).number(uint64(id))
		}
		j.text("]")
	}
	j.text(`],"weights":[`)
	for i, sample := range list {
		j.comma(i).number(sample.value)
	}
	j.text("]}")
}

// comma separates all but the first of a list.
func (j *jsonWriter) comma(i int) *jsonWriter {
	if i > 0 {
		j.text(",")
	}
	return j
}
