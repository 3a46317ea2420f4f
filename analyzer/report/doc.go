// Package report holds what a report says as plain values: bytes are uint64, times nanoseconds since the trace's base.
// Their JSON names are documented in docs/report-json.md. Nothing in it refers to a trace.
package report
