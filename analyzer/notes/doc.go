// Package notes describes the limits of a report: lost records, truncated stacks, parts of a run that could not be
// recorded.
package notes
