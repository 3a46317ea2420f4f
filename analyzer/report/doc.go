// Package report holds the contents of a report as plain values: bytes are uint64, times nanoseconds since the trace's
// base. Their JSON names are documented in docs/report-json.md, the kinds of findings in docs/findings.md. Nothing in
// it refers to a trace.
package report
