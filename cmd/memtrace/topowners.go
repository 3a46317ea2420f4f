package main

import (
	"time"

	"memtrace/analyzer"
	"memtrace/analyzer/render"
)

// topOwners says who owns what a recorded process holds.
type topOwners struct {
	ReadAt         time.Time            `json:"read_at"`
	By             string               `json:"by"`
	Level          string               `json:"level"` // whose blocks the rows divide: the framework's if it reported any, else the driver's
	DriverBytes    uint64               `json:"driver_bytes"`
	FrameworkBytes uint64               `json:"framework_bytes"`
	OtherBytes     map[string]uint64    `json:"other_bytes"` // managed, pinned and foreign memory, which occupies no device by itself
	Framework      string               `json:"framework"`
	Devices        []topTracked         `json:"devices"`
	Rows           []analyzer.LedgerRow `json:"rows"`
	LostRecords    uint64               `json:"lost_records"`
	Problem        string               `json:"problem"` // why the figures may be wrong
}

// topTracked is what a trace knows of one device.
type topTracked struct {
	Index          int16  `json:"index"` // as the process counts
	UUID           string `json:"uuid"`
	DriverBytes    uint64 `json:"driver_bytes"`
	FrameworkBytes uint64 `json:"framework_bytes"`
}

// on returns what the trace knows of the device with a UUID.
func (o *topOwners) on(uuid string) (bytes uint64, known bool) {
	for _, d := range o.Devices {
		if d.UUID == uuid && uuid != "" {
			return d.DriverBytes, true
		}
	}
	return 0, false
}

// frameworkName is what people call the framework.
func (o *topOwners) frameworkName() string {
	return render.FrameworkName(map[string]string{o.Framework: "known"})
}

// ownersOf takes from a summary what top shows.
func ownersOf(s *analyzer.Summary) *topOwners {
	o := &topOwners{LostRecords: s.LostRecords, DriverBytes: s.Driver.LiveBytes, FrameworkBytes: s.Framework.LiveBytes, OtherBytes: map[string]uint64{},
		Devices: []topTracked{}, Rows: []analyzer.LedgerRow{}, Framework: "framework"}
	for name := range s.Versions {
		if name == "torch" || name == "mxnet" {
			o.Framework = name
		}
	}
	for name, level := range s.Other {
		if level.LiveBytes > 0 {
			o.OtherBytes[name] = level.LiveBytes
		}
	}
	for _, d := range s.Devices {
		o.Devices = append(o.Devices, topTracked{Index: d.Index, UUID: d.UUID, DriverBytes: d.Driver.LiveBytes, FrameworkBytes: d.Framework.LiveBytes})
	}
	if len(s.By) > 0 {
		o.By = s.By[0]
	}
	if l := s.Ledger(o.By); l != nil {
		o.Level = l.Level
		o.Rows = append(o.Rows, l.Rows...)
	}
	return o
}
