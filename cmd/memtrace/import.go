package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"memtrace/analyzer/render/layout"
	"memtrace/internal/cmdline"
	"memtrace/internal/manual"
	"memtrace/internal/regular"
	"memtrace/internal/tracefile"
	"memtrace/internal/usage"
	"memtrace/internal/visible"
	"memtrace/trace"
	"memtrace/trace/importer"
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
	output   string
	format   string
	interval time.Duration
	columns  []string
	force    bool
}

// maxInterval bounds --interval.
const maxInterval = time.Hour

func (a *app) importCommand() *cobra.Command {
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
		Annotations: map[string]string{manual.Details: importDetails},
		Example:     importExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("name one file")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.importFile(o, args[0]) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "write to this `FILE`")
	f.StringVar(&o.format, "format", "", "`FORMAT` of the file (default: by its content)")
	f.DurationVar(&o.interval, "interval", importer.DefaultInterval,
		"nvidia-smi: `TIME` between samples, for a file without timestamps")
	f.StringSliceVar(&o.columns, "columns", nil,
		"nvidia-smi: `COLUMNS` of a file without a heading, as in --query-gpu")
	f.BoolVarP(&o.force, "force", "f", false, "replace that file if it exists")
	cmdline.Complete(cmd, "format", cmdline.Values(formats...))
	cmdline.Complete(cmd, "interval", cmdline.Values())
	cmdline.Complete(cmd, "columns", cmdline.Values("timestamp,index,memory.used", "index,memory.used"))
	return cmd
}

func (a *app) importFile(o importOptions, path string) error {
	format := importer.Find(o.format)
	switch {
	case o.output == "" && term.IsTerminal(int(a.Stdout.Fd())):
		return usage.Errorf("refusing to write a binary trace to a terminal; name a file with -o")
	case o.format != "" && format == nil:
		return usage.Errorf("--format %s: choose from %s", o.format, strings.Join(importer.Names(), ", "))
	case o.interval <= 0 || o.interval > maxInterval:
		return usage.Errorf("--interval %v: a time such as 10ms, up to %v", o.interval, maxInterval)
	}
	in, err := regular.Open(path)
	if err != nil {
		return tracefile.OpenError(path, err)
	}
	defer in.Close()
	if err := tracefile.RefuseSame(path, o.output); err != nil {
		return err
	}
	size, err := in.Seek(0, io.SeekEnd)
	if err != nil {
		return tracefile.OpenError(path, err)
	}
	room, err := unnamedFile()
	if err != nil {
		return err
	}
	defer room.Close()
	content, size, err := importer.Unpack(in, size, room, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if format == nil {
		if format, err = importer.Recognize(content, size); err != nil {
			return fmt.Errorf("%s: %w; --format says what a file is", path, err)
		}
	}
	result, err := a.importAs(format, path, io.NewSectionReader(content, 0, size), o)
	if err != nil {
		return err
	}
	if !a.Quiet {
		a.Say("%s of a %s", layout.Plural(uint64(result.Events), "event", "events"), result.Kind)
		for _, lack := range result.Lacks {
			a.Say("%s", lack)
		}
	}
	return nil
}

// unnamedFile makes a temporary file that ends with the command.
func unnamedFile() (*os.File, error) {
	file, err := os.CreateTemp("", "memtrace-import-*")
	if err == nil {
		err = os.Remove(file.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("make a temporary file: %w; TMPDIR names the folder for it", err)
	}
	return file, nil
}

// importAs writes the trace. Errors about the file name it.
func (a *app) importAs(format *importer.Format, path string, in *io.SectionReader,
	o importOptions) (result importer.Result, err error) {
	spill, err := unnamedFile()
	if err != nil {
		return result, err
	}
	defer spill.Close()
	err = a.WriteTo(o.output, o.force, visible.Bytes, func(w io.Writer) error {
		out, err := trace.NewWriter(w, trace.WriterOptions{})
		if err != nil {
			return err
		}
		options := importer.Options{Interval: o.interval, Columns: o.columns, Spill: spill}
		if result, err = format.Import(out, in, in.Size(), options); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	return result, err
}
