// Package notes says what limits a report: lost records, cut stacks, parts of a run that could not be seen.
package notes
