package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/render/layout"
	"memtrace/internal/rewrite"
	"memtrace/internal/sanitize"
	"memtrace/trace"
)

const compactLong = `Write a smaller copy of a long trace. Peaks, what held memory then, what is live, and the
number and size of all allocations stay exact; iterations, lifetimes and growth are
computed from the last part alone. To record with a limit, use memtrace run --trace-max,
or MEMTRACE_TRACE_MAX.`

const compactDetails = `The last part of the trace stays as it is. Of the part before, only blocks are kept that
were live at a peak, at a mark, at a sample of the device, when memory ran out, or at
the end of that part; blocks that were allocated and freed in between are left out.

With --max the last part takes half of that size, and the part before is thinned until
the copy fits. A trace can be compacted again.`

const compactExample = `  memtrace compact --max 200M memtrace.python3.4711.bin -o small.bin
  memtrace report small.bin`

type compactOptions struct {
	copyFlags
	max       cli.Size
	keyframes bool
}

func compactCommand(a *app) *cobra.Command {
	var o compactOptions
	cmd := &cobra.Command{
		Use:               "compact [flags] FILE -o OUT",
		Short:             "Write a smaller copy; peaks stay exact",
		Long:              compactLong,
		Annotations:       map[string]string{cli.DetailsFlag: compactDetails},
		Example:           compactExample,
		ValidArgsFunction: cli.CompleteTraces,
		Args:              cli.OneTrace,
		RunE:              func(_ *cobra.Command, args []string) error { return a.compact(o, args[0]) },
	}
	o.copyFlags.define(cmd)
	cmd.Flags().Var(&o.max, "max", "largest `SIZE` of the copy, such as 200M (default: one pass over all but the last eighth)")
	cmd.Flags().BoolVar(&o.keyframes, "keyframes", false,
		"add keyframes to the copy, as memtrace embed --keyframes does")
	return cmd
}

// compactPasses bounds how often a trace is thinned: each pass merges wider stretches of the run.
const compactPasses = 8

func (a *app) compact(o compactOptions, arg string) error {
	return a.copyTrace(arg, o.copyFlags, sanitize.Bytes, false,
		func(w io.Writer, source trace.Source, path string) (string, error) {
			st, err := os.Stat(path)
			if err != nil {
				return "", err
			}
			folder := "" // standard output may be in one that cannot be written
			if o.output != "" && o.output != "-" {
				folder = filepath.Dir(o.output)
			}
			made, err := compactTo(folder, source, st.Size(), int64(o.max))
			if err != nil {
				return "", err
			}
			defer made.file.Close()
			if o.keyframes {
				if err := made.addKeyframes(a, int64(o.max)); err != nil {
					return "", err
				}
			}
			_, err = io.Copy(w, made.content())
			return fmt.Sprintf("%s instead of %s: %s of the first %s left out", layout.Bytes(uint64(made.size)),
				layout.Bytes(uint64(st.Size())), report.Count(made.thinned.Events, "event", "events"),
				layout.Duration(made.thinned.UntilTime)), err
		})
}

// compacted is a finished copy in a file without a name.
type compacted struct {
	file    *os.File
	size    int64
	thinned trace.Thinned
}

func (c *compacted) content() *io.SectionReader { return io.NewSectionReader(c.file, 0, c.size) }

// compactTo thins a trace of so many bytes until it has at most max bytes, 0 for one pass, into a file in folder.
func compactTo(folder string, source trace.Source, size, most int64) (*compacted, error) {
	whole := size / 8
	if most > 0 {
		whole = most / 2
	}
	made, err := thinTo(folder, source, size-whole)
	for pass := 1; err == nil && most > 0 && made.size > most; pass++ {
		before := made
		reader, err := trace.NewReader(before.content(), before.size)
		if err == nil {
			made, err = thinTo(folder, reader, before.size-whole)
		}
		before.file.Close()
		if err != nil {
			return nil, err
		}
		if made.size > most && (pass == compactPasses || made.size > before.size-before.size/20) {
			made.file.Close()
			return nil, fmt.Errorf(
				"%s are the least that it can have: what is live, its call stacks and the last %s; give a larger --max", layout.Bytes(uint64(made.size)), layout.Bytes(uint64(whole)))
		}
	}
	return made, err
}

// thinTo thins the part of a trace before an offset, once.
func thinTo(folder string, source trace.Source, wholeFrom int64) (_ *compacted, err error) {
	located, ok := source.(rewrite.CopySource)
	if !ok {
		return nil, errors.New("this kind of recording cannot be compacted")
	}
	made := &compacted{}
	if made.file, err = temporaryFile(folder); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			made.file.Close()
			err = cli.WriteError(made.file, "a temporary file in "+filepath.Dir(made.file.Name()), err)
		}
	}()
	out, err := trace.NewWriter(made.file, trace.WriterOptions{})
	if err != nil {
		return nil, err
	}
	c, err := rewrite.NewCopier(out, located, rewrite.CopyOptions{WholeFrom: wholeFrom})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := errors.Join(c.Run(), c.Finish()); err != nil {
		return nil, err
	}
	made.size, made.thinned = out.Offset(), c.Thinned()
	return made, nil
}
