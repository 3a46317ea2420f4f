package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/internal/cmdline"
	"memtrace/internal/exports"
	"memtrace/internal/questions"
	"memtrace/internal/usage"
)

const exportLong = `Write what a trace says about call stacks in the format of another tool, or as a
picture, or its tables as CSV:

%s
The file lies beside the trace, under its name with another ending, unless -o
names another one; '-o -' is standard output. Each stack has four values, one of
which --value chooses: the bytes that stood at the peak, those that were left at
the end, those of all allocations, and the number of allocations. They add up to
what 'memtrace report' says of the level. Stacks are folded as in the report:
--full-stacks keeps the frames of interpreters, dispatchers and allocators.

dhat, perfetto and memory_viz tell of blocks as they came and went. A snapshot for
memory_viz holds what stands at its end, and its readers take the history back from
there: with --at it ends at that moment, not with the run. --limit bounds what is
held in memory: the blocks that perfetto divides among owners, the latest events of
a snapshot's history. What does not fit is reported.

csv writes the tables of the report, those that have rows, for spreadsheets and
other programs. Sizes are whole bytes, times seconds since the start. A name that a
spreadsheet would calculate, such as '=1+1', has an apostrophe before it.

%s
--push sends the profile of pprof to a server instead of writing a file: Pyroscope,
or one that takes what Pyroscope takes.

%s`

const exportExample = `  memtrace export flamegraph memtrace.python3.4711.bin
  memtrace export pprof --value allocated memtrace.python3.4711.bin
  memtrace export speedscope --focus 'attn|mlp' -o attention.json memtrace.python3.4711.bin
  memtrace export collapsed --no-lines -o - memtrace.python3.4711.bin | sort -nrk2 | head
  memtrace export perfetto memtrace.python3.4711.bin
  memtrace export memory_viz --at oom memtrace.python3.4711.bin
  memtrace export csv -o tables memtrace.python3.4711.bin
  memtrace export --push http://localhost:4040 memtrace.python3.4711.bin`

// exporter writes files of other tools, and speaks on the command's console.
func (a *app) exporter() *exports.Exporter { return &exports.Exporter{Console: &a.Console} }

func (a *app) exportCommand() *cobra.Command {
	var flags exports.Flags
	e := a.exporter()
	var list strings.Builder
	var names []cobra.Completion
	for _, f := range exports.Formats {
		fmt.Fprintf(&list, "  %-12s %s (%s)\n", f.Name, f.Doc, f.Extension)
		names = append(names, cobra.CompletionWithDesc(f.Name, f.Doc))
	}
	fmt.Fprintf(&list, "  %-12s %s (%s)\n", exports.CSVName, "a folder with each table of the report",
		exports.CSVExtension)
	names = append(names, cobra.CompletionWithDesc(exports.CSVName, "a folder with each table of the report"))
	cmd := &cobra.Command{
		Use:   "export [flags] FORMAT FILE",
		Short: "Write flame graphs, files for pprof, Perfetto and others, CSV",
		Long: fmt.Sprintf(exportLong, list.String(), exports.CSVTables(), questions.WindowHelp+"\n\n"+
			questions.FilterHelp),
		Example: exportExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 && !(len(args) == 1 && flags.Pushes()) {
				return usage.Errorf("name a format (%s) and a trace", strings.Join(exports.Names(), ", "))
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string,
			typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return names, cobra.ShellCompDirectiveNoFileComp
			}
			return cmdline.Traces(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 { // a server takes nothing else
				args = []string{"pprof", args[0]}
			}
			if args[0] == exports.CSVName {
				return e.CSV(&flags, args[1])
			}
			return e.Stacks(cmd.Context(), &flags, args[0], args[1])
		},
	}
	flags.Define(cmd)
	return cmd
}
