package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// TestBriefIsBrief: for any names and any number of rows, the brief form is one line of JSON that fits.
func TestBriefIsBrief(t *testing.T) {
	long := strings.Repeat("\u00e9\U0001f4a5\x1b[31m\"", 5000)
	s := &report.Summary{By: []string{"site"}, Notes: []string{long, long, long}}
	s.Process.Command, s.Process.Host = long, long
	s.Framework = report.Level{AllocCount: 1, PeakBytes: 1 << 40}
	s.Versions = map[string]string{"torch": long, long: long}
	l := report.Ledger{By: "site", Level: "framework", Moment: "peak", WholeBytes: 1 << 40}
	for i := range 1000 {
		l.Rows = append(l.Rows, report.LedgerRow{Owner: report.OwnerBlocks, Key: fmt.Sprint(i, long), Bytes: 1 << 30})
		s.Devices = append(s.Devices, report.Device{Index: int16(i), Name: long, Framework: s.Framework})
	}
	s.Ledgers = []report.Ledger{l}
	var text bytes.Buffer
	if err := BriefJSON(&text, s, layout.Options{Path: long}); err != nil {
		t.Fatal(err)
	}
	var v briefReport
	if err := json.Unmarshal(text.Bytes(), &v); err != nil || text.Len() > briefBytes ||
		bytes.Count(text.Bytes(), []byte("\n")) != 1 {
		t.Fatalf("%d bytes, %v", text.Len(), err)
	}
	if v.Schema != BriefSchema || len(v.Sentences) == 0 || len(v.Next) == 0 || len(v.Owners) == 0 ||
		v.Verdict.PeakBytes != 1<<40 {
		t.Errorf("%+v", v)
	}
	if strings.Contains(text.String(), "\x1b") {
		t.Error("control characters")
	}
}
