package oom

import (
	"encoding/json"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// AddSidecars takes from the recorder's own reports what no replay can know: which text files it wrote.
func AddSidecars(o *report.OOM, src trace.Source) {
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
