package render

import (
	"testing"

	"memtrace/analyzer/report"
)

// A device ledger's blocks are shown by requested bytes if those are known of all of them; its rows still add up.
func TestDeviceRowsAddUp(t *testing.T) {
	l := &report.DeviceLedger{Rows: []report.DeviceRow{
		{Owner: report.OwnerBlocks, Key: "a", Bytes: 1024, Requested: &report.Requested{Bytes: 1000, RestBytes: 24}},
		{Owner: report.OwnerBlocks, Key: "b", Bytes: 512, Requested: &report.Requested{UnknownBytes: 512}},
		{Owner: report.OwnerSlack, Bytes: 100},
	}}
	if !requestsKnown([]*report.DeviceLedger{l}) {
		t.Fatal("the requests are known")
	}
	rows := deviceRows(l, true)
	var sum int64
	for _, r := range rows {
		sum += r.Bytes
	}
	if sum != 1636 || rows[0].Bytes != 1000 || rows[1].Bytes != 512 ||
		rows[3] != (report.DeviceRow{Owner: ownerRest, Bytes: 24}) || l.Rows[0].Bytes != 1024 {
		t.Errorf("%+v", rows)
	}
	l.Rows[1].Requested = nil
	if requestsKnown([]*report.DeviceLedger{l}) {
		t.Error("of b it is not known")
	}
}
