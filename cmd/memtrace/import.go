package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"memtrace/internal/regular"
	"memtrace/internal/visible"
	"memtrace/trace"
	"memtrace/trace/importer"
)

const importLong = `Make a trace of a memory snapshot that PyTorch wrote, so that report, diff, export
and the other verbs can read it. A snapshot is what
torch.cuda.memory._dump_snapshot("snapshot.pickle") writes; with
torch.cuda.memory._record_memory_history() before the training it holds the history
of every block, without it only the blocks of one moment.

The pickle is read as data: nothing in it is run, and a pickle that would run
something is refused. What a snapshot does not hold is said on standard error.`

const importExample = `  memtrace import snapshot.pickle -o snapshot.bin
  memtrace report snapshot.bin
  memtrace diff snapshot.bin memtrace.python3.4711.bin`

type importOptions struct {
	output string
	force  bool
}

func (a *app) importCommand() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:     "import [flags] FILE -o OUT",
		Short:   "Make a trace of a PyTorch memory snapshot",
		Long:    importLong,
		Example: importExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("name one file")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.importFile(o, args[0]) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "write to this `FILE`")
	f.BoolVarP(&o.force, "force", "f", false, "replace that file if it exists")
	return cmd
}

func (a *app) importFile(o importOptions, path string) error {
	if o.output == "" && term.IsTerminal(int(a.stdout.Fd())) {
		return usagef("refusing to write a binary trace to a terminal; name a file with -o")
	}
	in, err := regular.Open(path)
	if err != nil {
		return openError(path, err)
	}
	defer in.Close()
	if err := refuseSame(path, o.output); err != nil {
		return err
	}
	if !pickled(in) {
		return fmt.Errorf("%s: offset 0: not a pickle; name a file that torch.cuda.memory._dump_snapshot wrote", path)
	}
	var result importer.Result
	err = a.writeTo(o.output, o.force, visible.Bytes, func(w io.Writer) error {
		out, err := trace.NewWriter(w, trace.WriterOptions{})
		if err != nil {
			return err
		}
		if result, err = importer.Torch(out, in); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	if err == nil && !a.quiet {
		a.say("%d events of a PyTorch memory snapshot", result.Events)
		for _, lack := range result.Lacks {
			a.say("%s", lack)
		}
	}
	return err
}

// pickled reports whether a file begins as pickles of protocol 2 and later do.
func pickled(file io.ReaderAt) bool {
	first := make([]byte, 1)
	n, _ := file.ReadAt(first, 0)
	return n == 1 && first[0] == 0x80
}

func isPickle(path string) bool {
	file, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return pickled(file)
}
