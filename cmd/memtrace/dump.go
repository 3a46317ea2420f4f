package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/internal/cli"
	"memtrace/internal/safefile"
	"memtrace/internal/sanitize"
	"memtrace/internal/textform"
	"memtrace/internal/tracefile"
	"memtrace/trace"
)

const dumpLong = `Print a trace as text: one line for each event, dictionary entry and fact about the run.
--encode converts such a text back to a trace, for tests and bug reports.

--from, --to, --kind and -n select events, by their order numbers (seq); then only those
dictionary entries are printed that they refer to, and no facts about the run.`

const dumpExample = `  memtrace dump memtrace.python3.4711.bin | less
  memtrace dump --kind oom,mark --from 100000 memtrace.python3.4711.bin
  memtrace dump --encode trace.txt -o trace.bin`

type dumpOptions struct {
	from, to uint64
	kinds    []string
	events   int64
	encode   bool
	copyFlags
}

func dumpCommand(a *app) *cobra.Command {
	var o dumpOptions
	cmd := &cobra.Command{
		Use:               "dump [flags] FILE",
		Short:             "Print a trace as text, or convert such text to a trace",
		Long:              dumpLong,
		Example:           dumpExample,
		ValidArgsFunction: cli.CompleteTraces,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 && (!o.encode || len(args) != 0) {
				return cli.UsageErrorf("name one trace, or with --encode one text ('-' for standard input)")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if o.encode {
				return a.encode(o, append(args, "-")[0])
			}
			return a.dump(o, args[0])
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&o.from, "from", 0, "first order number, a `SEQ`")
	f.Uint64Var(&o.to, "to", math.MaxUint64, "last order number, a `SEQ`")
	f.Lookup("to").DefValue = "0" // pflag shows no default of 0; this one has twenty digits
	f.StringSliceVar(&o.kinds, "kind", nil, "only events of these `KINDS`, separated by commas: "+
		strings.Join(eventKinds(), ", "))
	f.Int64VarP(&o.events, "events", "n", -1, "at most this `NUMBER` of events")
	f.Lookup("events").DefValue = "0" // shown as none
	f.BoolVar(&o.encode, "encode", false, "convert text to a trace")
	o.copyFlags.define(cmd)
	cli.CompleteFlag(cmd, "kind", cli.CompleteList(eventKinds()...))
	for _, name := range []string{"from", "to", "events"} {
		cli.CompleteFlag(cmd, name, cli.CompleteValues())
	}
	return cmd
}

// eventKinds lists the names that --kind takes.
func eventKinds() []string {
	var names []string
	for _, spec := range trace.EventSpecs {
		if spec.Kind != trace.EventNone {
			names = append(names, spec.Name)
		}
	}
	return names
}

func (a *app) dump(o dumpOptions, arg string) error {
	filter, err := o.filter()
	if err != nil {
		return err
	}
	return a.copyTrace(arg, o.copyFlags, sanitize.Lines, filter != nil,
		func(w io.Writer, source trace.Source, _ string) (string, error) {
			if filter == nil {
				return "", textform.Write(w, source)
			}
			filter.Source = source
			return "", textform.WriteEvents(w, filter)
		})
}

// filter returns nil where every event is wanted.
func (o dumpOptions) filter() (*eventFilter, error) {
	if o.from > o.to {
		return nil, cli.UsageErrorf("--from %d is after --to %d", o.from, o.to)
	}
	f := &eventFilter{from: o.from, to: o.to, left: o.events}
	for _, name := range o.kinds {
		kind, ok := parseKind(name)
		if !ok {
			return nil, cli.UsageErrorf("--kind %s: choose from %s", name, strings.Join(eventKinds(), ", "))
		}
		if f.kinds == nil {
			f.kinds = make(map[trace.EventKind]bool)
		}
		f.kinds[kind] = true
	}
	if f.from == 0 && f.to == math.MaxUint64 && f.kinds == nil && f.left < 0 {
		return nil, nil
	}
	return f, nil
}

func parseKind(name string) (trace.EventKind, bool) {
	for _, spec := range trace.EventSpecs {
		if spec.Name == name && spec.Kind != trace.EventNone {
			return spec.Kind, true
		}
	}
	return trace.EventNone, false
}

func (a *app) encode(o dumpOptions, path string) error {
	text := a.Stdin
	if path == "-" {
		path = "standard input"
	} else {
		file, err := safefile.Open(path)
		if err != nil {
			return tracefile.OpenError(path, err)
		}
		defer file.Close()
		if text, err = safefile.Content(file); err != nil {
			return tracefile.OpenError(path, err)
		}
	}
	return a.writeCopy(path, o.copyFlags, sanitize.Bytes, func(w io.Writer) error {
		err := textform.Encode(w, text)
		var wrong *textform.Error
		if errors.As(err, &wrong) {
			return fmt.Errorf("%w; 'memtrace dump' shows the form", err)
		}
		return err
	})
}

// eventFilter is a Source that passes on a part of another one's events.
type eventFilter struct {
	trace.Source
	from, to uint64                   // order numbers, both included
	kinds    map[trace.EventKind]bool // nil: all
	left     int64                    // events still to pass on; negative: no limit

	kept []trace.Event // reused
}

// ReadBatch returns the next events that pass, valid until the next call.
func (f *eventFilter) ReadBatch() ([]trace.Event, error) {
	for f.left != 0 {
		batch, err := f.Source.ReadBatch()
		if err != nil {
			return nil, err
		}
		f.kept = f.kept[:0]
		for i := range batch {
			if f.left != 0 && f.passes(&batch[i]) {
				f.kept = append(f.kept, batch[i])
				f.left--
			}
		}
		if len(f.kept) > 0 {
			return f.kept, nil
		}
	}
	return nil, io.EOF
}

func (f *eventFilter) passes(e *trace.Event) bool {
	return e.Seq >= f.from && e.Seq <= f.to && (f.kinds == nil || f.kinds[e.Kind])
}
