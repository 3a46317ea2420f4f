package render

import (
	"encoding/json"
	"fmt"
	"io"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
)

// Schemas name the versions of JSON output. A number is incremented only when something is changed or removed;
// additions do not change it.
const (
	ReportSchema = "memtrace.report/1"
	DiffSchema   = "memtrace.diff/1"
)

// JSON writes a summary as one JSON object, see docs/report-json.md.
func JSON(w io.Writer, s *report.Summary) error {
	return WriteJSON(w, Document{ReportSchema, DocumentVerdict{s.Verdict(), Verdict(s)}, Findings(s), s})
}

// Document is the JSON form of a summary, as JSON writes it and as a Go program can decode it.
type Document struct {
	Schema   string           `json:"schema"`
	Verdict  DocumentVerdict  `json:"verdict"`
	Findings []report.Finding `json:"findings"`
	*report.Summary
}

// DocumentVerdict is the answer in figures and in words.
type DocumentVerdict struct {
	*report.Verdict
	Sentences []string `json:"sentences"`
}

// DiffJSON writes a diff as one JSON object, see docs/report-json.md.
func DiffJSON(w io.Writer, d *diff.Diff) error {
	return WriteJSON(w, struct {
		Schema string `json:"schema"`
		*diff.Diff
	}{DiffSchema, d})
}

// WriteJSON writes a value as indented JSON.
func WriteJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}
