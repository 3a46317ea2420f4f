// Package finding has the kinds of sentences in a report in addition to its figures, each with an id that programs can
// rely on. docs/findings.md lists them.
package finding
