package tracefile

import (
	"fmt"

	"memtrace/analyzer"
	"memtrace/internal/cli"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/internal/rules/rulefile"
)

// FindIterations turns moments that name an iteration into the times at which those ended. That takes a reading of the
// trace of its own, which happens only where an iteration is named.
func FindIterations(c *cli.Console, path string, o *analyzer.Options) error {
	named := false
	for _, at := range []moment.At{o.At, o.From, o.To} {
		named = named || at.Kind == moment.Iteration
	}
	if !named {
		return nil
	}
	set, err := rulefile.Open(rulefile.Default)
	if err != nil {
		return err
	}
	s, err := SummarizeAny(c, path, analyzer.Options{Training: true,
		Question: analyzer.Question{Groupings: []string{"api"}},
		RuleSets: []profile.RuleGrouping{{Name: "category", Rules: set}}})
	if err != nil {
		return err
	}
	for _, at := range []*moment.At{&o.At, &o.From, &o.To} {
		if at.Kind != moment.Iteration {
			continue
		}
		end, found := s.Training.EndOf(at.Step)
		if !found {
			return fmt.Errorf("%s: the trace has no moment %s: %s", path, at, s.Training.EndedWords())
		}
		*at = at.AtEnd(end)
	}
	return nil
}
