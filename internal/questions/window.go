package questions

import (
	"github.com/spf13/cobra"

	"memtrace/analyzer/moment"
	"memtrace/internal/cmdline"
	"memtrace/internal/usage"
)

// WindowFlags ask for the part of the run between two moments.
type WindowFlags struct {
	From, To string
	Moment   bool // --to without --from is a moment and no end of a window
}

// WindowHelp goes before FilterHelp.
const WindowHelp = `--from and --to answer for a part of the run: its own peak, and what of its blocks was
allocated and freed in it. Either may be left out. A moment is a time since the start
(1.5s), step:N (its beginning), iteration:N (its end), mark:NAME, oom, oom:N, teardown (right after the last
allocation), and of --to exit. --from mark:NAME is the first mark of that name, --to
mark:NAME the first one after --from.`

// Define adds --from and --to.
func (w *WindowFlags) Define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.From, "from", "",
		"answer for the run from this `MOMENT` on: a time such as 1.5s, step:N, iteration:N, mark:NAME, oom, oom:N or teardown")
	f.StringVar(&w.To, "to", "",
		"answer for the run up to this `MOMENT`: a time such as 1.5s, step:N, iteration:N, mark:NAME, oom, oom:N, teardown or exit")
	cmdline.Complete(cmd, "from", cmdline.Values("teardown", "oom", "oom:", "mark:", "step:", "iteration:"))
	cmdline.Complete(cmd, "to", cmdline.Values("teardown", "exit", "oom", "oom:", "mark:", "step:", "iteration:"))
}

// moments checks the flags.
func (w *WindowFlags) moments() (from, to moment.At, err error) {
	if from, err = moment.Parse(w.From); err != nil {
		return from, to, usage.Errorf("--from: %w", err)
	}
	if to, err = moment.Parse(w.To); err != nil {
		return from, to, usage.Errorf("--to: %w", err)
	}
	if w.Moment && from.IsZero() {
		return from, to, nil
	}
	if err := moment.CheckWindow(from, to); err != nil {
		return from, to, usage.Errorf("%w", err)
	}
	return from, to, nil
}
