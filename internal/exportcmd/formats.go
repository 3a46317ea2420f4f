package exportcmd

import (
	"fmt"
	"io"
	"strings"

	"memtrace/analyzer"
	"memtrace/internal/cli"
	"memtrace/internal/export"
	"memtrace/internal/sanitize"
	"memtrace/internal/spool"
	"memtrace/internal/tracefile"
)

// Format is one way to write stacks. A new format is a row of Formats.
type Format struct {
	Name, Extension, Doc string
	form                 sanitize.Form
	labels               bool   // rows hold what their memory is for
	bothLevels           bool   // a file holds all levels unless one was requested
	hint                 string // a command that opens the file, with %s for its path; "": there is no such command
	write                func(w io.Writer, sets []*analyzer.StackSet, o export.Options) error
	// instead of write: blocks, as they came and went
	replay func(w io.Writer, run *export.Run, o export.Options) (*export.Written, error)
	// of the flags about what to write, those that apply to a format that is replayed
	takes []string
}

// Formats lists the formats in the order of the help text.
var Formats = []Format{
	{Name: "flamegraph", Extension: ".svg", Doc: "a picture for the browser; your own lines stand out",
		hint: "open it in a browser", write: oneSet(export.FlameGraph)},
	{Name: "pprof", Extension: ".pb.gz", Doc: "a profile for pprof", form: sanitize.Bytes,
		labels: true,
		hint:   "go tool pprof -http=: %s", write: oneSet(export.Pprof)},
	{Name: "speedscope", Extension: ".speedscope.json", Doc: "a profile for speedscope.app",
		form: sanitize.JSON, bothLevels: true,
		hint: "open it at https://www.speedscope.app, which keeps it in your browser", write: export.Speedscope},
	{Name: "collapsed", Extension: ".collapsed.txt", Doc: "one line per stack, for flamegraph.pl and others",
		hint: "flamegraph.pl --countname bytes %s", write: oneSet(export.Collapsed)},
	{Name: "dhat", Extension: ".dhat.json", Doc: "lifetimes and peak of each stack, for Valgrind's dh_view",
		form: sanitize.JSON,
		hint: "open dh_view.html of Valgrind in a browser and load it there", replay: export.DHAT,
		takes: []string{"level", "at", "full-stacks", "no-lines"}},
	{Name: "perfetto", Extension: ".pftrace", Doc: "memory over time, slices and marks, for Perfetto",
		form: sanitize.Bytes,
		hint: "open it at https://ui.perfetto.dev, which keeps it in your browser", replay: export.Perfetto,
		takes: []string{"limit"}},
	{Name: "memory_viz", Extension: ".pickle", Doc: "a snapshot for PyTorch's memory_viz",
		form: sanitize.Bytes,
		hint: "drop it on https://pytorch.org/memory_viz, which keeps it in your browser", replay: export.Snapshot,
		takes: []string{"at", "full-stacks", "limit"}},
	{Name: "blocks", Extension: ".blocks.json", Doc: "each block with its owner, and the marks, as JSON",
		form: sanitize.JSON,
		hint: "memtrace.load(TRACE).blocks of the Python package reads the same", replay: export.Blocks,
		takes: []string{"limit"}},
}

// opens returns how a file of the format is opened.
func (f *Format) opens(file string) string {
	if strings.Contains(f.hint, "%s") {
		return "open it with: " + fmt.Sprintf(f.hint, cli.ShellWord(file))
	}
	return f.hint
}

func oneSet(write func(io.Writer, *analyzer.StackSet, export.Options) error) func(io.Writer, []*analyzer.StackSet,
	export.Options) error {
	return func(w io.Writer, sets []*analyzer.StackSet, o export.Options) error { return write(w, sets[0], o) }
}

// Names returns the names of all formats, those of tables last.
func Names() []string {
	var names []string
	for _, f := range Formats {
		names = append(names, f.Name)
	}
	return append(names, CSVName, ParquetName)
}

func find(name string) (*Format, error) {
	for i := range Formats {
		if Formats[i].Name == name {
			return &Formats[i], nil
		}
	}
	return nil, cli.UsageErrorf("there is no format %q; choose from %s", name, strings.Join(Names(), ", "))
}

// pathOf is the trace's path with a format's Extension: memtrace.python3.4711.svg for memtrace.python3.4711.bin.
func pathOf(path string, format *Format) string {
	path = strings.TrimSuffix(path, spool.Extension)
	return strings.TrimSuffix(path, tracefile.Suffix) + format.Extension
}
