package tables

import (
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// rowsAtOnce are handed to the encoder together; groupRows are a row group, the unit in which engines share the work. A
// column whose different values take more than dictionaryBytes is written without a dictionary.
const (
	rowsAtOnce      = 4096
	groupRows       = 1 << 20
	dictionaryBytes = 1 << 20
)

// Table is one kind of file.
type Table struct {
	Name, Doc string
	Detail    bool // a row for every block or event
	row       reflect.Type
	open      func(w *Writer, out io.Writer, o []parquet.WriterOption) closer
}

type closer interface{ close() error }

// All lists the tables in the order of the documentation.
var All = []Table{
	tableOf("runs", "each rank: process, versions, peaks, whether the trace is whole", false,
		func(w *Writer) **table[Run] { return &w.runs }),
	tableOf("devices", "each device of a rank, with its peaks", false,
		func(w *Writer) **table[Device] { return &w.devices }),
	tableOf("profiles", "what held memory at the peak and at the end, by owner", false,
		func(w *Writer) **table[Share] { return &w.profiles }),
	tableOf("steps", "iterations: peak, and what was live when they ended", false,
		func(w *Writer) **table[Step] { return &w.steps }),
	tableOf("step_categories", "the same by category", false,
		func(w *Writer) **table[StepShare] { return &w.stepShares }),
	tableOf("tags", "tag paths: peak, live, allocations", false,
		func(w *Writer) **table[Tag] { return &w.tags }),
	tableOf("samples", "the highest bytes of each level in equal intervals", false,
		func(w *Writer) **table[Sample] { return &w.samples }),
	tableOf("stacks", "call stacks, the same ids in all ranks", false,
		func(w *Writer) **table[Stack] { return &w.stacks }),
	tableOf("frames", "their frames", false, func(w *Writer) **table[Frame] { return &w.frames }),
	tableOf("blocks", "with --events: every block", true, func(w *Writer) **table[Block] { return &w.blocks }),
	tableOf("events", "with --events: every allocation and free", true,
		func(w *Writer) **table[Event] { return &w.events }),
}

func tableOf[T any](name, doc string, detail bool, field func(*Writer) **table[T]) Table {
	return Table{Name: name, Doc: doc, Detail: detail, row: reflect.TypeFor[T](),
		open: func(w *Writer, out io.Writer, o []parquet.WriterOption) closer {
			t := &table[T]{out: parquet.NewGenericWriter[T](out, o...), rows: make([]T, 0, rowsAtOnce)}
			*field(w) = t
			return t
		}}
}

// Find returns the table of a name, nil if there is none.
func Find(name string) *Table {
	for i := range All {
		if All[i].Name == name {
			return &All[i]
		}
	}
	return nil
}

// Writer writes rows of several ranks. Its memory does not grow with the rows, but for the ids of stacks and frames.
type Writer struct {
	runs       *table[Run]
	devices    *table[Device]
	profiles   *table[Share]
	steps      *table[Step]
	stepShares *table[StepShare]
	tags       *table[Tag]
	samples    *table[Sample]
	stacks     *table[Stack]
	frames     *table[Frame]
	blocks     *table[Block]
	events     *table[Event]

	opened []closer
	names  names
}

// NewWriter returns a Writer of some tables, each to an output of its own. version is that of the program that writes.
func NewWriter(version string, list []Table, outputs []io.Writer) *Writer {
	options := []parquet.WriterOption{parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}),
		parquet.MaxRowsPerRowGroup(groupRows), parquet.DictionaryMaxBytes(dictionaryBytes),
		parquet.CreatedBy("memtrace", version, "")}
	w := &Writer{names: newNames()}
	for i := range list {
		w.opened = append(w.opened, list[i].open(w, outputs[i], options))
	}
	return w
}

// Detailed reports whether blocks or events are written, for which a trace is read once more.
func (w *Writer) Detailed() bool { return w.blocks != nil || w.events != nil }

// Close writes what is buffered and the files' ends. The outputs stay open.
func (w *Writer) Close() error {
	var problems []error
	for _, t := range w.opened {
		problems = append(problems, t.close())
	}
	return errors.Join(problems...)
}

// table is one file. A nil table takes rows in and forgets them.
type table[T any] struct {
	out  *parquet.GenericWriter[T]
	rows []T
	err  error // of the first write that failed
}

func (t *table[T]) add(row T) {
	if t == nil {
		return
	}
	if t.rows = append(t.rows, row); len(t.rows) == cap(t.rows) {
		t.flush()
	}
}

func (t *table[T]) flush() {
	if t.err == nil {
		_, t.err = t.out.Write(t.rows)
	}
	t.rows = t.rows[:0]
}

// failed returns the error of an earlier write.
func (t *table[T]) failed() error {
	if t == nil {
		return nil
	}
	return t.err
}

func (t *table[T]) close() error {
	t.flush()
	if t.err != nil {
		return fmt.Errorf("write rows: %w", t.err)
	}
	if err := t.out.Close(); err != nil {
		return fmt.Errorf("write the table's end: %w", err)
	}
	return nil
}
