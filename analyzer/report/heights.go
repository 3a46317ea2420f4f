package report

// Heights are the highest bytes of a level in each of many equal stretches of time, the first of which begins with the trace.
type Heights struct {
	Level     string   `json:"level"`
	WidthNS   int64    `json:"width_ns"`   // of one stretch
	PeakBytes []uint64 `json:"peak_bytes"` // by stretch; the last one may have been cut short by the end
}
