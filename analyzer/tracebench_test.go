package analyzer_test

import (
	"os"
	"testing"

	"memtrace/analyzer"
	"memtrace/internal/profile"
	"memtrace/internal/rules/rulefile"
	"memtrace/internal/spool"
	"memtrace/internal/symbol"
)

// BenchmarkTrace reads the trace that MEMTRACE_BENCH_TRACE names, as the command does for its reports.
func BenchmarkTrace(b *testing.B) {
	path := os.Getenv("MEMTRACE_BENCH_TRACE")
	if path == "" {
		b.Skip("MEMTRACE_BENCH_TRACE names no trace")
	}
	set, err := rulefile.Open(rulefile.Default)
	if err != nil {
		b.Fatal(err)
	}
	categories := []profile.RuleGrouping{{Name: "category", Rules: set}}
	for _, read := range []struct {
		name string
		analyzer.Options
	}{
		{"report", analyzer.Options{Question: analyzer.Question{Sites: true}, Training: true, RuleSets: categories}},
		{"iterations", analyzer.Options{Training: true, RuleSets: categories}},
		{"name", analyzer.Options{Question: analyzer.Question{Sites: true, Groupings: []string{"name"}}}},
		{"site", analyzer.Options{Question: analyzer.Question{Sites: true, Groupings: []string{"site"}}}},
	} {
		b.Run(read.name, func(b *testing.B) {
			var events uint64
			for b.Loop() {
				events = summarizeFile(b, path, read.Options)
			}
			b.ReportMetric(float64(b.N)*float64(events)/1e6/b.Elapsed().Seconds(), "Mevents/s")
		})
	}
}

func summarizeFile(b *testing.B, path string, o analyzer.Options) (events uint64) {
	run := openFile(b, path)
	defer run.Close()
	if o.Training {
		ahead := openFile(b, path)
		defer ahead.Close()
		o.Ahead = ahead
	}
	o.Symbols = symbol.Options{NoFiles: true}
	s, err := analyzer.Summarize(run, o)
	if err != nil {
		b.Fatal(err)
	}
	return s.Health.Events
}

func openFile(b *testing.B, path string) *spool.Run {
	run, err := spool.OpenRun(path)
	if err != nil {
		b.Fatal(err)
	}
	return run
}
