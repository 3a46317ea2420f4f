package main

import (
	"io"
	"strings"

	"memtrace/analyzer"
	"memtrace/analyzer/export"
	"memtrace/internal/tracefile"
	"memtrace/internal/usage"
	"memtrace/internal/visible"
	"memtrace/trace/spool"
)

// exportFormat is one way to write stacks. A new format is a row of exportFormats.
type exportFormat struct {
	name, extension, doc string
	form                 visible.Form
	labels               bool   // rows say what their memory is for
	bothLevels           bool   // a file holds all levels unless one was asked for
	hint                 string // a command that opens the file, which stands for %s; "": there is no such command
	write                func(w io.Writer, sets []*analyzer.StackSet, o export.Options) error
	replay               func(w io.Writer, run *export.Run, o export.Options) (*export.Written, error) // instead of write: blocks, as they came and went
	takes                []string                                                                      // of the flags about what to write, those that apply to a format that is replayed
}

var exportFormats = []exportFormat{
	{name: "flamegraph", extension: ".svg", doc: "a picture for the browser; your own lines stand out",
		hint: "open it in a browser", write: oneSet(export.FlameGraph)},
	{name: "pprof", extension: ".pb.gz", doc: "a profile for pprof, with all values and labels", form: visible.Bytes, labels: true,
		hint: "go tool pprof -http=: %s", write: oneSet(export.Pprof)},
	{name: "speedscope", extension: ".speedscope.json", doc: "for speedscope.app, with all values and levels", form: visible.JSON, bothLevels: true,
		hint: "open it at https://www.speedscope.app, which keeps it in your browser", write: export.Speedscope},
	{name: "collapsed", extension: ".collapsed.txt", doc: "one line for each stack, for flamegraph.pl and others",
		hint: "flamegraph.pl --countname bytes %s", write: oneSet(export.Collapsed)},
	{name: "dhat", extension: ".dhat.json", doc: "for Valgrind's dh_view: lifetimes and peak of each stack", form: visible.JSON,
		hint: "open dh_view.html of Valgrind in a browser and load it there", replay: export.DHAT, takes: []string{"level", "at", "full-stacks", "no-lines"}},
	{name: "perfetto", extension: ".pftrace", doc: "for Perfetto's viewer: memory over time, slices, marks", form: visible.Bytes,
		hint: "open it at https://ui.perfetto.dev, which keeps it in your browser", replay: export.Perfetto, takes: []string{"limit"}},
	{name: "memory_viz", extension: ".pickle", doc: "a snapshot for PyTorch's memory_viz, with all device memory", form: visible.Bytes,
		hint: "drop it on https://pytorch.org/memory_viz, which keeps it in your browser", replay: export.Snapshot, takes: []string{"at", "full-stacks", "limit"}},
}

func oneSet(write func(io.Writer, *analyzer.StackSet, export.Options) error) func(io.Writer, []*analyzer.StackSet, export.Options) error {
	return func(w io.Writer, sets []*analyzer.StackSet, o export.Options) error { return write(w, sets[0], o) }
}

func exportNames() []string {
	var names []string
	for _, f := range exportFormats {
		names = append(names, f.name)
	}
	return append(names, exportCSVName)
}

func findExport(name string) (*exportFormat, error) {
	for i := range exportFormats {
		if exportFormats[i].name == name {
			return &exportFormats[i], nil
		}
	}
	return nil, usage.Errorf("there is no format %q; choose from %s", name, strings.Join(exportNames(), ", "))
}

// exportPath is the trace's path with a format's extension: memtrace.python3.4711.svg for memtrace.python3.4711.bin.
func exportPath(path string, format *exportFormat) string {
	path = strings.TrimSuffix(path, spool.Extension)
	return strings.TrimSuffix(path, tracefile.Suffix) + format.extension
}
