package analyzer

import (
	"encoding/json"
	"fmt"

	"memtrace/trace"
)

// Section returns the report as the text of a trace's OOM section. Lists that would make it too long are cut to their largest rows.
func (r *OOMReport) Section() (string, error) {
	for _, rows := range []int{1 << 16, 200, 20} {
		text, err := json.Marshal(r.withRows(rows))
		if err != nil {
			return "", fmt.Errorf("encode the OOM report: %w", err)
		}
		if len(text) <= trace.MaxOOMBytes {
			return string(text), nil
		}
	}
	return "", fmt.Errorf("encode the OOM report: it is longer than %d bytes", trace.MaxOOMBytes)
}

// withRows returns a copy whose lists have at most limit rows each; what is left out is one row, so that sums stay.
func (r *OOMReport) withRows(limit int) *OOMReport {
	c := *r
	c.Event.Ledgers = make([]Ledger, len(r.Event.Ledgers))
	for i, l := range r.Event.Ledgers {
		l.Rows = fewerRows(l.Rows, limit)
		c.Event.Ledgers[i] = l
	}
	if r.Event.Since != nil {
		since := *r.Event.Since
		since.Rows = fewerRows(since.Rows, limit)
		c.Event.Since = &since
	}
	return &c
}

// fewerRows sums up the smallest block rows; they come first, and largest first, so the cut is behind the ones to keep.
func fewerRows(rows []LedgerRow, limit int) []LedgerRow {
	n := 0
	for n < len(rows) && rows[n].Owner == OwnerBlocks {
		n++
	}
	if n <= limit {
		return rows
	}
	rest := LedgerRow{Owner: OwnerBlocks, Key: fmt.Sprintf("(%d more)", n-limit)}
	for _, row := range rows[limit:n] {
		rest.Bytes += row.Bytes
	}
	return append(append(append([]LedgerRow{}, rows[:limit]...), rest), rows[n:]...)
}

// addSidecars takes from the recorder's own reports what no replay can know: which text files it wrote.
func addSidecars(o *OOM, src trace.Source) {
	reporter, ok := src.(trace.OOMReporter)
	if !ok {
		return
	}
	files := make(map[uint64]string)
	for _, text := range reporter.OOMReports() {
		var r struct {
			Event struct {
				Seq     uint64 `json:"seq"`
				Sidecar string `json:"sidecar_file"`
			} `json:"event"`
		}
		if json.Unmarshal([]byte(text), &r) == nil && r.Event.Sidecar != "" {
			files[r.Event.Seq] = r.Event.Sidecar
		}
	}
	for i := range o.Events {
		o.Events[i].Sidecar = files[o.Events[i].Seq]
	}
}
