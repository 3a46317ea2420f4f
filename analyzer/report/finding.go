package report

import "slices"

// Finding is one sentence of a report, the same in the text and in JSON: a verdict, growth, advice, or a limit of the
// figures.
type Finding struct {
	ID       string `json:"id"`       // one of FindingKinds; names are permanent
	Severity string `json:"severity"` // SeverityAlarm, SeverityWarning, SeverityAdvice or SeverityInfo
	Bytes    uint64 `json:"bytes"`    // the memory that it is about; 0: none, or not known
	// what it rests on: fields of the report, as in health.truncated_at, or info.KEY of the trace
	Evidence []string `json:"evidence"`
	Text     string   `json:"text"`
}

// How much a finding matters: its Severity.
const (
	SeverityAlarm   = "alarm"   // the program ran out of memory, or will
	SeverityWarning = "warning" // figures are incomplete, or may be wrong
	SeverityAdvice  = "advice"  // something to try
	SeverityInfo    = "info"    // what the figures mean, and how to read them
)

// FindingKind is a row of the table of docs/findings.md.
type FindingKind struct {
	ID, Severity, Says string
}

// NewFinding makes a finding of a kind of FindingKinds.
func NewFinding(id, text string, bytes uint64, evidence ...string) Finding {
	severity := SeverityInfo
	if i := slices.IndexFunc(FindingKinds, func(k FindingKind) bool { return k.ID == id }); i >= 0 {
		severity = FindingKinds[i].Severity
	}
	return Finding{ID: id, Severity: severity, Bytes: bytes, Evidence: append([]string{}, evidence...), Text: text}
}
