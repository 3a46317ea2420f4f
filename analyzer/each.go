package analyzer

import (
	"errors"
	"fmt"
	"io"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// SummarizeEach answers several questions in one reading of a trace, and one of the Ahead of the first: what Summarize
// answers to each. All need Ahead, or none does; keyframes are not used for several. It takes the memory of as many
// replays, and fails where one of them does. There must be one question.
func SummarizeEach(src trace.Source, list []Options) ([]*report.Summary, error) {
	if len(list) == 1 {
		s, err := Summarize(src, list[0])
		return []*report.Summary{s}, err
	}
	var profiles []*Profile
	defer func() {
		for _, p := range profiles {
			p.Close()
		}
	}()
	for _, opts := range list {
		opts.Keyframes, opts.Ahead = false, list[0].Ahead
		if opts.NeedsAhead() != list[0].NeedsAhead() {
			return nil, errors.New("questions that are answered in one reading must all need the trace once more, or none")
		}
		p, err := newProfile(src, opts)
		if err != nil {
			return nil, err
		}
		profiles = append(profiles, p)
	}
	if err := readAhead(profiles...); err != nil {
		return nil, err
	}
	if err := replayTogether(src, profiles); err != nil {
		return nil, err
	}
	summaries := make([]*report.Summary, len(profiles))
	for i, p := range profiles {
		var err error
		if summaries[i], err = p.Report(p.opts.Question); err != nil {
			return nil, err
		}
	}
	return summaries, nil
}

// replayTogether replays what a source has for several profiles, batch by batch.
func replayTogether(src trace.Source, profiles []*Profile) error {
	shared := &sharedSource{Source: src}
	for _, p := range profiles {
		p.replayer.ooms.Info = src.Info
	}
	for {
		shared.read()
		for _, p := range profiles {
			if err := p.replayer.next(shared); err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("read events: %w", err)
			}
		}
		if errors.Is(shared.err, io.EOF) {
			return nil
		}
		if progress := profiles[0].opts.Progress; progress != nil {
			progress(bytesRead(src))
		}
	}
}

// sharedSource hands the same batch of a source to several replays.
type sharedSource struct {
	trace.Source
	batch *trace.Batch
	err   error
}

// read goes on to the next batch.
func (s *sharedSource) read() {
	if columns, ok := s.Source.(trace.ColumnSource); ok {
		s.batch, s.err = columns.ReadColumns()
		return
	}
	var events []trace.Event
	events, s.err = s.ReadBatch()
	s.batch = trace.RowBatch(events)
}

// ReadColumns implements trace.ColumnSource.
func (s *sharedSource) ReadColumns() (*trace.Batch, error) { return s.batch, s.err }
