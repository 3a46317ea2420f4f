package tracefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/profile"
	"memtrace/internal/rules/rulefile"
	"memtrace/internal/runprofile"
	"memtrace/internal/safefile"
	"memtrace/internal/version"
	"memtrace/trace"
)

// ProfileFile is an open profile of a run. The caller closes it.
type ProfileFile struct {
	*runprofile.File
	path string
	file *os.File
}

// Close closes the file.
func (p *ProfileFile) Close() error { return p.file.Close() }

// OpenProfile opens a profile; nil for a file that is none, or that cannot be opened, of which Open says why.
func OpenProfile(path string) (*ProfileFile, error) {
	file, err := safefile.Open(path)
	if err != nil {
		return nil, nil
	}
	opened, err := openProfile(path, file)
	if opened == nil {
		file.Close()
	}
	return opened, err
}

func openProfile(path string, file *os.File) (*ProfileFile, error) {
	content, err := safefile.Content(file)
	if err != nil {
		return nil, nil
	}
	f, err := runprofile.Open(content, content.Size())
	switch {
	case errors.Is(err, runprofile.ErrNotProfile) && strings.HasSuffix(path, runprofile.Suffix) &&
		!beginsTrace(content):
		return nil, fmt.Errorf("%s: %w (%d bytes); write it again with 'memtrace profile TRACE', or remove it", path,
			err, content.Size())
	case errors.Is(err, runprofile.ErrNotProfile):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &ProfileFile{f, path, file}, nil
}

// beginsTrace reports whether a file begins like a trace, whatever it is called.
func beginsTrace(content *io.SectionReader) bool {
	_, err := trace.NewReader(content, content.Size())
	return err == nil || errors.Is(err, trace.ErrVersion)
}

// Head returns the head of the profile.
func (p *ProfileFile) Head() (*report.Head, error) {
	h, err := p.File.Head()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.path, err)
	}
	return h, nil
}

// Rank is what the comparison of ranks needs of a trace, or of its profile.
type Rank struct {
	Head    *report.Head
	Summary *report.Summary // the report; nil where the head of a profile was enough
}

// ReadRank reads a trace, or as much as is needed of its profile. Errors are those of Summarize.
func ReadRank(c *cli.Console, path string, o analyzer.Options) (Rank, error) {
	if !runprofile.NeedsBody(&o) {
		p, err := OpenProfile(path)
		if err != nil {
			return Rank{}, err
		}
		if p != nil {
			defer p.Close()
			head, err := p.Head()
			return Rank{Head: head}, err
		}
	}
	s, err := Summarize(c, path, o)
	if err != nil {
		return Rank{}, err
	}
	return Rank{report.HeadOf(s), s}, nil
}

// ProcessOf reads whose trace or profile a file is, without its events.
func ProcessOf(path string) (*report.Process, error) {
	p, err := OpenProfile(path)
	if err != nil {
		return nil, err
	}
	if p != nil {
		defer p.Close()
		head, err := p.Head()
		if err != nil {
			return nil, err
		}
		return &head.Summary.Process, nil
	}
	run, err := OpenAgain(path)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	// a program is described before its first event
	if _, err := run.ReadBatch(); err != nil && !errors.Is(err, io.EOF) {
		return nil, ReadError(path, run, err)
	}
	process := report.ProcessOf(run.Info())
	return &process, nil
}

// summary answers what a trace would be asked.
func (p *ProfileFile) summary(o *analyzer.Options) (*report.Summary, error) {
	body, err := p.Body()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.path, err)
	}
	s, err := body.Answer(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.path, err)
	}
	return s, nil
}

// MakeProfile makes the profile of a trace. own is as in analyzer.Options.
func MakeProfile(c *cli.Console, path string, own []string) (*runprofile.Profile, error) {
	set, err := rulefile.Open(rulefile.Default)
	if err != nil {
		return nil, err
	}
	source := runprofile.Source{Memtrace: version.String, Options: analyzer.Options{
		Question: analyzer.Question{Sites: true}, Symbols: cli.SymbolOptions(), Own: own, Training: true,
		RuleSets: []profile.RuleGrouping{{Name: cli.ByCategory, Rules: set}}}}
	source.Open = func(o *analyzer.Options) (trace.Source, func(), error) {
		run, err := Open(c, path)
		if err != nil {
			return nil, nil, err
		}
		done, err := LookAhead(path, o)
		if err != nil {
			run.Close()
			return nil, nil, err
		}
		return run, func() { run.Close(); done() }, nil
	}
	source.Complete = func(info trace.Info, s *report.Summary) error { return complete(path, info, s) }
	made, err := runprofile.Make(source)
	if err != nil {
		return nil, named(path, err)
	}
	return made, nil
}

// named puts the file's name before an error that does not begin with it.
func named(path string, err error) error {
	if strings.HasPrefix(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}
