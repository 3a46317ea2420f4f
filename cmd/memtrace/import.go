package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"memtrace/internal/cli"
	"memtrace/internal/importer"
	"memtrace/internal/render/layout"
	"memtrace/internal/safefile"
	"memtrace/internal/sanitize"
	"memtrace/internal/tracefile"
	"memtrace/trace"
)

const importLong = `Convert a file of another tool to a trace, for report, diff, plot, html and the other
commands. Formats are recognized by their content:

%s`

const importDetails = `A snapshot of PyTorch is what torch.cuda.memory._dump_snapshot("snapshot.pickle")
writes; with torch.cuda.memory._record_memory_history() before the training it holds the
history of every block, without it only the blocks of one moment. The list that
torch.cuda.memory_snapshot() returns is accepted, too, and JSON. A pickle is read as
data: nothing in it is executed, and a pickle that would execute something is refused.

Files compressed by gzip or zstd are unpacked. What a file does not contain is listed on
standard error and in the report's notes.`

const importExample = `  memtrace import snapshot.pickle -o snapshot.bin
  memtrace diff snapshot.bin memtrace.python3.4711.bin
  memtrace import --interval 10ms memory.csv -o smi.bin`

type importOptions struct {
	copyFlags
	format   string
	interval time.Duration
	columns  []string
}

// maxInterval bounds --interval.
const maxInterval = time.Hour

func importCommand(a *app) *cobra.Command {
	var o importOptions
	var list strings.Builder
	var formats []string
	for i := range importer.Formats {
		f := &importer.Formats[i]
		fmt.Fprintf(&list, "  %-13s %s\n", f.Name, f.Doc)
		formats = append(formats, f.Name+"\t"+f.Doc)
	}
	cmd := &cobra.Command{
		Use:         "import [flags] FILE -o OUT",
		Short:       "Convert another tool's output to a trace",
		Long:        fmt.Sprintf(importLong, strings.TrimRight(list.String(), "\n")),
		Annotations: map[string]string{cli.DetailsFlag: importDetails},
		Example:     importExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.UsageErrorf("name one file")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.importFile(o, args[0]) },
	}
	o.copyFlags.define(cmd)
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "", "`FORMAT` of the file (default: by its content)")
	f.DurationVar(&o.interval, "interval", importer.DefaultInterval,
		"nvidia-smi: `TIME` between samples, for a file without timestamps")
	f.StringSliceVar(&o.columns, "columns", nil,
		"nvidia-smi: `COLUMNS` of a file without a heading, as in --query-gpu")
	cli.CompleteFlag(cmd, "format", cli.CompleteValues(formats...))
	cli.CompleteFlag(cmd, "interval", cli.CompleteValues())
	cli.CompleteFlag(cmd, "columns", cli.CompleteValues("timestamp,index,memory.used", "index,memory.used"))
	return cmd
}

func (a *app) importFile(o importOptions, path string) error {
	format := importer.Find(o.format)
	switch {
	case o.format != "" && format == nil:
		return cli.UsageErrorf("--format %s: choose from %s", o.format, strings.Join(importer.Names(), ", "))
	case o.interval <= 0 || o.interval > maxInterval:
		return cli.UsageErrorf("--interval %v: a time such as 10ms, up to %v", o.interval, maxInterval)
	}
	in, err := safefile.Open(path)
	if err != nil {
		return tracefile.OpenError(path, err)
	}
	defer in.Close()
	var result importer.Result
	err = a.writeCopy(path, o.copyFlags, sanitize.Bytes, func(w io.Writer) (err error) {
		result, err = importTo(w, in, format, importer.Options{Interval: o.interval, Columns: o.columns})
		return err
	})
	if err != nil || a.Quiet {
		return err
	}
	a.Say("%s of a %s", layout.Plural(uint64(result.Events), "event", "events"), result.Kind)
	for _, lack := range result.Lacks {
		a.Say("%s", lack)
	}
	return nil
}

// importTo writes the trace. format is nil where the content decides.
func importTo(w io.Writer, in *os.File, format *importer.Format, o importer.Options) (result importer.Result,
	err error) {
	size, err := in.Seek(0, io.SeekEnd)
	if err != nil {
		return result, err
	}
	unpacked, err := temporaryFile("")
	if err != nil {
		return result, err
	}
	defer unpacked.Close()
	content, size, err := importer.Unpack(in, size, unpacked, 0)
	if err != nil {
		return result, err
	}
	if format == nil {
		if format, err = importer.Recognize(content, size); err != nil {
			return result, fmt.Errorf("%w; --format says what a file is", err)
		}
	}
	spill, err := temporaryFile("")
	if err != nil {
		return result, err
	}
	defer spill.Close()
	o.Spill = spill
	out, err := trace.NewWriter(w, trace.WriterOptions{})
	if err != nil {
		return result, err
	}
	return format.Import(out, io.NewSectionReader(content, 0, size), size, o)
}
