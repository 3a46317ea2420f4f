package cli

import (
	"github.com/spf13/cobra"

	"memtrace/internal/moment"
)

// WindowFlags select the part of the run between two moments.
type WindowFlags struct {
	From, To string
	Moment   bool // --to without --from is a moment and no end of a window
}

// WindowHelp is a part of what the man pages of report, html, plot and export have.
const WindowHelp = `--from and --to select a part of the run: its own peak, and which of its blocks were
allocated and freed in it. Either may be left out. step:N is the beginning of a step,
for which the program calls memtrace.step(); iteration:N is the end of an iteration,
also of those that reports find without it; teardown is the moment right after the last
allocation. --from mark:NAME is the first mark of that name, --to mark:NAME the first
one after --from.`

// Define adds --from and --to.
func (w *WindowFlags) Define(cmd *cobra.Command) {
	f := cmd.Flags()
	from := "a time such as 1.5s, mark:NAME, iteration:N, step:N (of memtrace.step()), oom, oom:N or teardown"
	if f.Lookup("at") != nil {
		from = "as for --at, but not peak or exit"
	}
	f.StringVar(&w.From, "from", "", "begin at this `MOMENT`: "+from)
	f.StringVar(&w.To, "to", "", "end at this `MOMENT`, as for --from, or at exit")
	GroupFlags(cmd, GroupPart, "from", "to")
	CompleteFlag(cmd, "from", CompleteValues("teardown", "oom", "oom:", "mark:", "step:", "iteration:"))
	CompleteFlag(cmd, "to", CompleteValues("teardown", "exit", "oom", "oom:", "mark:", "step:", "iteration:"))
}

// moments checks the flags.
func (w *WindowFlags) moments() (from, to moment.At, err error) {
	if from, err = moment.Parse(w.From); err != nil {
		return from, to, UsageErrorf("--from: %w", err)
	}
	if to, err = moment.Parse(w.To); err != nil {
		return from, to, UsageErrorf("--to: %w", err)
	}
	if w.Moment && from.IsZero() {
		return from, to, nil
	}
	if err := moment.CheckWindow(from, to); err != nil {
		return from, to, UsageErrorf("%w", err)
	}
	return from, to, nil
}
