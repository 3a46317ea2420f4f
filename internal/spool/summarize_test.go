package spool_test

import (
	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/spool"
	"memtrace/trace"
)

func init() {
	spool.Summarize = func(src trace.Source, groupings []string) (*report.Summary, error) {
		return analyzer.Summarize(src, analyzer.Options{Question: analyzer.Question{Groupings: groupings}})
	}
}
