package tracefile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/export"
	"memtrace/trace"
)

// Summarize reads one trace, or its profile. Filters that match nothing in it are an error: a report of zeros would
// mislead.
func Summarize(c *cli.Console, path string, o analyzer.Options) (*report.Summary, error) {
	summary, err := SummarizeAny(c, path, o)
	if err == nil {
		err = CheckMatched(path, summary)
	}
	if err != nil {
		return nil, err
	}
	return summary, nil
}

// CheckMatched returns an error for filters that matched nothing.
func CheckMatched(path string, s *report.Summary) error {
	if len(s.Unmatched) > 0 {
		return fmt.Errorf("%s: %s", path, strings.Join(s.Unmatched, "; "))
	}
	return nil
}

// SummarizeAny is summarize for those who accept filters that match nothing.
func SummarizeAny(c *cli.Console, path string, o analyzer.Options) (*report.Summary, error) {
	if p, err := OpenProfile(path); p != nil || err != nil {
		if err != nil {
			return nil, err
		}
		defer p.Close()
		return p.summary(&o)
	}
	o.Keyframes = true
	s, err := summarize(c, path, o)
	if errors.Is(err, analyzer.ErrKeyframes) {
		o.Keyframes = false
		return summarize(c, path, o)
	}
	return s, err
}

func summarize(c *cli.Console, path string, o analyzer.Options) (*report.Summary, error) {
	list, err := readEach(c, path, []analyzer.Options{o})
	if len(list) == 0 {
		return nil, err
	}
	return list[0], err
}

// SummarizeEach answers several questions about one trace, which is no profile, in one reading of it; see
// analyzer.SummarizeEach. Filters may match nothing.
func SummarizeEach(c *cli.Console, path string, list []analyzer.Options) ([]*report.Summary, error) {
	if len(list) == 1 {
		s, err := SummarizeAny(c, path, list[0])
		return []*report.Summary{s}, err
	}
	return readEach(c, path, slices.Clone(list))
}

func readEach(c *cli.Console, path string, list []analyzer.Options) ([]*report.Summary, error) {
	run, err := Open(c, path)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	for i := range list {
		if err := FindIterations(c, path, &list[i]); err != nil {
			return nil, err
		}
	}
	done, err := LookAhead(path, &list[0])
	if err != nil {
		return nil, err
	}
	defer done()
	bar := c.NewProgress(path, run.Size())
	defer bar.Finish()
	list[0].Progress = func(read int64) { bar.Update(read) }
	summaries, err := analyzer.SummarizeEach(run, list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, s := range summaries {
		err = errors.Join(err, complete(path, run.Info(), s))
	}
	return summaries, err
}

// complete adds to a report what the replay of the trace leaves out.
func complete(path string, info trace.Info, s *report.Summary) (err error) {
	if err := readGrown(path, s); err != nil {
		return err
	}
	if s.OwnAccounts, err = export.OwnAccounts(info); err != nil {
		s.AddNotes(report.NewFinding("own-account-unread",
			fmt.Sprintf("A framework's own account is left out: %v.", err), 0, "own_accounts"))
	}
	return nil
}

// LookAhead opens a trace a second time where filters or training need names, some of which may follow the events, or
// where a moment depends on what follows it. The caller calls done.
func LookAhead(path string, o *analyzer.Options) (done func(), err error) {
	if !o.NeedsAhead() {
		return func() {}, nil
	}
	ahead, err := OpenAgain(path)
	if err != nil {
		return nil, err
	}
	o.Ahead = ahead
	return func() { ahead.Close() }, nil
}

// readGrown reads a trace once more where that tells what segments that grow give back.
func readGrown(path string, s *report.Summary) error {
	if !analyzer.WantsGrown(s) {
		return nil
	}
	again, err := OpenAgain(path)
	if err != nil {
		return err
	}
	defer again.Close()
	if err := analyzer.ReadGrown(again, s); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
