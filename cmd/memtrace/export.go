package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/internal/cli"
	"memtrace/internal/exportcmd"
)

const exportLong = `Write stacks, blocks or tables of a trace in another tool's format, beside the trace
or where -o names; --push sends the pprof profile to Pyroscope.

%s`

const exportDetails = `Each stack has four values, one of which --value chooses: the bytes at the peak, those
left at the end, those of all allocations, and the number of allocations. They add up to
what 'memtrace report' shows of the level. Stacks are folded as in the report;
--full-stacks keeps the frames of interpreters, dispatchers and allocators.

dhat, perfetto, memory_viz and blocks contain blocks with their lifetimes. A snapshot for
memory_viz holds what is live at its end, and its readers compute the history back from
there: with --at it ends at that moment. --limit bounds what is held in memory: the
blocks that perfetto divides among owners or that blocks lists, the latest events of a
snapshot's history.
What does not fit is reported.

csv writes the tables of the report, those that have rows. Sizes are whole bytes, times
seconds since the start. A name that a spreadsheet would calculate, such as '=1+1', has
an apostrophe before it.

%s
parquet writes a folder for each table, which engines read as one over many ranks, runs
and machines; DIR/TABLE/run=NAME/ranks-0-63.parquet has the rows of all traces named,
in the order of their ranks:

%s
--push also takes the address of another server that accepts Pyroscope's requests.

%s`

const exportExample = `  memtrace export flamegraph memtrace.python3.4711.bin
  memtrace export pprof --value allocated memtrace.python3.4711.bin
  memtrace export speedscope --focus 'attn|mlp' -o attention.json train.bin
  memtrace export memory_viz --at oom memtrace.python3.4711.bin
  memtrace export parquet -o tables traces/
  memtrace export --push http://localhost:4040 memtrace.python3.4711.bin`

const (
	csvDoc     = "a folder with each table of the report"
	parquetDoc = "tables over many ranks, for DuckDB and Spark"
)

// exporter writes files of other tools, and speaks on the command's console.
func (a *app) exporter() *exportcmd.Exporter { return &exportcmd.Exporter{Console: &a.Console} }

func exportCommand(a *app) *cobra.Command {
	var flags exportcmd.Flags
	e := a.exporter()
	var list strings.Builder
	var names []cobra.Completion
	for _, f := range exportcmd.Formats {
		fmt.Fprintf(&list, "  %-12s %s\n", f.Name, f.Doc)
		names = append(names, cobra.CompletionWithDesc(f.Name, f.Doc))
	}
	fmt.Fprintf(&list, "  %-12s %s\n", exportcmd.CSVName, csvDoc)
	fmt.Fprintf(&list, "  %-12s %s\n", exportcmd.ParquetName, parquetDoc)
	names = append(names, cobra.CompletionWithDesc(exportcmd.CSVName, csvDoc),
		cobra.CompletionWithDesc(exportcmd.ParquetName, parquetDoc))
	cmd := &cobra.Command{
		Use:     "export [flags] FORMAT FILE...",
		Short:   "Write flame graphs, files for pprof, Perfetto and others, tables",
		Long:    fmt.Sprintf(exportLong, strings.TrimRight(list.String(), "\n")),
		Example: exportExample,
		Annotations: map[string]string{
			cli.DetailsFlag: fmt.Sprintf(exportDetails, exportcmd.CSVTables(), exportcmd.ParquetTables(),
				cli.WindowHelp+"\n\n"+cli.FilterHelp),
		},
		Args: func(_ *cobra.Command, args []string) error {
			many := len(args) > 2 && args[0] == exportcmd.ParquetName
			if len(args) != 2 && !many && !(len(args) == 1 && flags.Pushes()) {
				return cli.UsageErrorf("name a format (%s) and a trace", strings.Join(exportcmd.Names(), ", "))
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string,
			typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return names, cobra.ShellCompDirectiveNoFileComp
			}
			return cli.CompleteTraces(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 { // a server takes nothing else
				args = []string{"pprof", args[0]}
			}
			switch args[0] {
			case exportcmd.CSVName:
				return e.CSV(&flags, args[1])
			case exportcmd.ParquetName:
				return e.Parquet(&flags, args[1:])
			}
			return e.Stacks(cmd.Context(), &flags, args[0], args[1])
		},
	}
	flags.Define(cmd)
	return cmd
}
