// Package finding has the kinds of sentences that a report says beside its figures, each with a name that programs can
// rely on. docs/findings.md lists them.
package finding
