// pgo merges CPU profiles into the one that the compiler gets: scripts/pgo.sh. Of the samples it keeps what the
// compiler uses, functions and lines, so that the file holds nothing about the machine and the day.
//
// Usage: pgo PROFILE... > cmd/memtrace/reports.pgo
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/google/pprof/profile"
)

// callDepth is how many frames of a sample stay, the innermost ones: the compiler weighs calls one by one.
const callDepth = 6

// leastShare is the part of all samples that a call stack needs to stay, one of so many.
const leastShare = 10_000

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pgo:", err)
		os.Exit(1)
	}
}

func run(names []string, to io.Writer) error {
	if len(names) == 0 {
		return errors.New("name the CPU profiles to merge")
	}
	var profiles []*profile.Profile
	for _, name := range names {
		p, err := read(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		profiles = append(profiles, p)
	}
	merged, err := profile.Merge(profiles)
	if err != nil {
		return fmt.Errorf("merge profiles: %w", err)
	}
	strip(merged)
	if merged = drop(merged.Compact()); len(merged.Sample) == 0 {
		return errors.New("no samples of memtrace's functions: run for longer")
	}
	return merged.Write(to)
}

func read(name string) (*profile.Profile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return profile.Parse(f)
}

// strip removes what identifies the run, and makes equal what differs only in addresses.
func strip(p *profile.Profile) {
	p.TimeNanos, p.DurationNanos, p.Comments, p.Mapping = 0, 0, nil, nil
	for _, l := range p.Location {
		l.Mapping, l.Address = nil, 0
	}
	for _, f := range p.Function {
		f.Filename = path.Base(f.Filename)
	}
	kept := p.Sample[:0]
	for _, s := range p.Sample {
		s.Label, s.NumLabel, s.NumUnit = nil, nil, nil
		if s.Location = s.Location[:min(callDepth, len(s.Location))]; isOurs(s) {
			kept = append(kept, s)
		}
	}
	p.Sample = kept
}

// isOurs reports whether a sample is from a function of memtrace's, or from one that it calls; the rest is the runtime
// and the benchmark itself.
func isOurs(s *profile.Sample) bool {
	for _, l := range s.Location {
		for _, line := range l.Line {
			if name := line.Function.Name; strings.HasPrefix(name, "memtrace/") && !strings.Contains(name, "_test.") {
				return true
			}
		}
	}
	return false
}

// drop leaves out the call stacks that hardly ever came up.
func drop(p *profile.Profile) *profile.Profile {
	var all int64
	value := len(p.SampleType) - 1
	for _, s := range p.Sample {
		all += s.Value[value]
	}
	kept := p.Sample[:0]
	for _, s := range p.Sample {
		if s.Value[value] >= all/leastShare {
			kept = append(kept, s)
		}
	}
	p.Sample = kept
	return p.Compact()
}
