package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"memtrace/internal/cli"
	"memtrace/internal/safefile"
	"memtrace/internal/spool"
	"memtrace/internal/symbol"
	"memtrace/internal/tracefile"
	"memtrace/trace"
)

const embedLong = `Add the names of functions, files and lines to finished traces, so that their call
stacks are readable on other machines and after the program's files have changed. Run it
where the files are those of the run.

Python's names are in every trace. Names of compiled code are taken from the object
files and their debug files. They are added after the end of the trace; nothing in it is
changed.`

const embedExample = `  memtrace embed memtrace.python3.4711.bin
  memtrace embed --keyframes memtrace.python3.4711.bin
  memtrace run --embed-symbols -- python3 train.py`

const embedKeyframesDetails = `With --keyframes, a trace of more than a million events also gets keyframes: what was live
at moments of the run. A report of a part of the run (--from, --to) then reads that part
instead of all before it, and says the same. They add at most 0.15 bytes an event. A copy
of the trace has none.`

func embedCommand(a *app) *cobra.Command {
	keyframes := false
	cmd := &cobra.Command{
		Use:               "embed FILE|DIR...",
		Short:             "Add the names of functions to a trace, for other machines",
		Long:              embedLong,
		Annotations:       map[string]string{cli.DetailsFlag: embedKeyframesDetails},
		Example:           embedExample,
		ValidArgsFunction: cli.CompleteTraces,
		Args:              cli.SomeTraces,
		RunE:              func(_ *cobra.Command, args []string) error { return embed(a, args, keyframes) },
	}
	cmd.Flags().BoolVar(&keyframes, "keyframes", false,
		"also add keyframes, so that reports of a part of the run read that part alone")
	return cmd
}

func embed(a *app, args []string, keyframes bool) error {
	inputs, err := tracefile.Expand(args)
	if err != nil {
		return err
	}
	var problems []error
	embedded := 0
	for _, in := range inputs {
		sum, err := embedInto(a, in.Path)
		switch {
		case tracefile.PassOver(&a.Console, in, err):
			continue
		case err != nil:
			problems = append(problems, err)
			continue
		}
		embedded++
		if !a.Quiet {
			a.Say("%s: %s", in.Path, sum.words())
		}
		warnMissingSymbols(a, in.Path, sum.problems)
		if keyframes {
			problems = append(problems, addKeyframes(a, in.Path))
		}
	}
	if embedded == 0 && len(problems) == 0 {
		return tracefile.NoTraceError(args[0])
	}
	return errors.Join(problems...)
}

// embedAfterRun embeds symbols in the traces of a run. Its failure is not the program's.
func embedAfterRun(a *app, traces []string) {
	var total embedding
	done := 0
	for _, path := range traces {
		sum, err := embedInto(a, path)
		if err != nil {
			a.Log.Warn().Msg("the names of functions are not written into the trace: " + err.Error())
			continue
		}
		warnMissingSymbols(a, path, sum.problems)
		total.add(sum)
		done++
	}
	if done > 0 && !a.Quiet {
		a.Say("%s", total.words())
	}
}

// warnMissingSymbols logs what is missing. Many programs have files without names, so this is shown on request only.
func warnMissingSymbols(a *app, path string, problems []string) {
	for _, problem := range problems {
		a.Log.Info().Msg(path + ": " + problem)
	}
}

// embedding is what it took to write names into traces.
type embedding struct {
	addresses int   // that got names
	had       int   // that had them before
	bytes     int64 // that the files grew
	took      time.Duration
	problems  []string
}

func (e *embedding) add(other embedding) {
	e.addresses += other.addresses
	e.had += other.had
	e.bytes += other.bytes
	e.took += other.took
}

func (e embedding) words() string {
	switch {
	case e.addresses == 0 && e.had > 0:
		return fmt.Sprintf("the names of %s are there already; there are no more", codeAddresses(e.had))
	case e.addresses == 0:
		return "no code address has a name"
	}
	return fmt.Sprintf("embedded the names of %s, %.1f KiB, %.1f s", codeAddresses(e.addresses), float64(e.bytes)/1024,
		e.took.Seconds())
}

func codeAddresses(n int) string {
	if n == 1 {
		return "1 code address"
	}
	return fmt.Sprintf("%d code addresses", n)
}

// embedInto writes names into one trace, whose program has ended.
func embedInto(a *app, path string) (sum embedding, err error) {
	start := time.Now()
	unlock, err := lockTrace(path)
	if err != nil {
		return sum, err
	}
	defer unlock()
	// another file at the spool's name is reported when the trace is opened
	if err := spool.Finalize(path); err != nil && !errors.Is(err, safefile.ErrNotRegular) {
		if errors.Is(err, spool.ErrRunning) {
			return sum, fmt.Errorf("%w; embed the names when it has ended", err)
		}
		return sum, tracefile.OpenError(path, err)
	}
	before, err := os.Stat(path)
	if err != nil {
		return sum, tracefile.OpenError(path, err)
	}
	run, symbols, problems, err := collectNames(a, path)
	if err != nil {
		return sum, err
	}
	defer run.Close()
	if err := appendNames(path, run, symbols); err != nil {
		return sum, err
	}
	after, err := os.Stat(path)
	if err != nil {
		return sum, tracefile.OpenError(path, err)
	}
	return embedding{addresses: len(symbols), had: run.Tables().Symbols(), bytes: after.Size() - before.Size(),
		took: time.Since(start), problems: problems}, nil
}

// lockTrace keeps other commands from adding names to a trace at the same time; readers need not wait. Where the file
// system has no locks it does without.
func lockTrace(path string) (unlock func(), err error) {
	file, err := safefile.Open(path)
	if err != nil {
		return nil, tracefile.OpenError(path, err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("%s: another command is writing names into it; wait until it has ended",
			path), file.Close())
	}
	return func() { file.Close() }, nil
}

// collectNames reads a trace to its end and names its code addresses. The caller closes the run.
func collectNames(a *app, path string) (_ *spool.Run, _ []trace.Symbol, problems []string, err error) {
	run, err := tracefile.Open(&a.Console, path)
	if err != nil {
		return nil, nil, nil, err
	}
	bar := a.NewProgress(path, run.Size())
	defer bar.Finish()
	for {
		_, err := run.ReadBatch()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			run.Close()
			return nil, nil, nil, tracefile.ReadError(path, run, err)
		}
		bar.Update(run.Offset())
	}
	names := symbol.New(run.Tables(), run.Info(), cli.SymbolOptions())
	defer names.Close()
	symbols := symbol.Collect(run.Tables(), names)
	return run, symbols, names.Problems(), nil
}

// appendNames writes after the end of a trace; where its program was killed, after its last record.
func appendNames(path string, run *spool.Run, symbols []trace.Symbol) error {
	if len(symbols) == 0 {
		return nil
	}
	_, clean := run.End()
	health := run.Health()
	if health.Torn.Stretches > 0 {
		return fmt.Errorf("%s: offset %d: damaged: %s; names are only added to whole traces", path, health.Torn.At,
			health.Torn.Reason)
	}
	if !clean && health.Truncated {
		return fmt.Errorf("%s: offset %d: cut or damaged: %s; names are only added to whole traces", path,
			health.TruncatedAt, health.Reason)
	}
	file, err := run.OpenToWrite(path)
	if err != nil {
		return tracefile.OpenError(path, err)
	}
	if clean {
		err = trace.AppendSymbols(file, symbols)
	} else {
		err = appendUnended(file, health, symbols)
	}
	return cli.WriteError(file, path, errors.Join(err, file.Close()))
}

func appendUnended(file *os.File, health trace.Health, symbols []trace.Symbol) error {
	if _, err := file.Seek(health.Bytes, io.SeekStart); err != nil {
		return err
	}
	w, err := trace.NewWriter(file, trace.WriterOptions{Append: health.Bytes, Watermark: health.MaxSeq + 1})
	if err != nil {
		return err
	}
	if err := w.WriteSymbols(symbols); err != nil { // a full disk must not leave half a section
		return errors.Join(err, file.Truncate(health.Bytes))
	}
	return nil
}
