package analyzer

import (
	"strings"

	"memtrace/trace"
)

// DeviceReport is what the devices said about themselves, joined with what the trace knows.
type DeviceReport struct {
	Status  string          `json:"status"`  // "on"; "off" without samples
	Why     string          `json:"why"`     // why there are no samples or no more; "" otherwise
	Notes   []string        `json:"notes"`   // what limits the figures, as the recorder found it
	Devices []DeviceSamples `json:"devices"` // those that were sampled
}

// DeviceSamples is one device's samples, with the ledger at some of them.
type DeviceSamples struct {
	Index       int16          `json:"index"`
	SampleCount uint64         `json:"sample_count"`
	Ledgers     []DeviceLedger `json:"ledgers"` // per moment and grouping
	Samples     []Sample       `json:"samples"` // thinned out when there are very many
}

// What a device ledger's Moment is when Options.At asks for none.
const (
	MomentHighest = "highest" // the sample at which the process used most
	MomentLast    = "last"
)

// DeviceLedger says what fills a device at one sample. Its rows add up to what the device reports as used.
type DeviceLedger struct {
	By         string `json:"by"`
	Moment     string `json:"moment"` // MomentHighest, MomentLast, or what was asked for
	TotalBytes uint64 `json:"total_bytes"`
	Sample     Sample `json:"sample"`
	// PartialPageBytes is by how much the pages of 2 MiB that blocks touch exceed the blocks: on hardware, that much of the remainder explains itself.
	PartialPageBytes uint64      `json:"partial_page_bytes"`
	Rows             []DeviceRow `json:"rows"`
}

// Kinds of device ledger rows beyond those of a Ledger and of an OOM event.
const (
	OwnerRounding  = "rounding"   // blocks take multiples of 512 bytes
	OwnerPoolIdle  = "pool_idle"  // held by stream-ordered pools, in no live block
	OwnerGraphPool = "graph_pool" // held for the allocation nodes of graphs
	OwnerUnlisted  = "unlisted"   // in use, but by no process that the device lists
	OwnerRemainder = "remainder"  // of this process, unexplained
)

// DeviceRow is one owner. Slack, unlisted bytes and the remainder may be negative.
type DeviceRow struct {
	Owner string `json:"owner"`
	Key   string `json:"key,omitempty"` // for blocks and outside
	Label string `json:"label,omitempty"`
	Bytes int64  `json:"bytes"`
}

// deviceReport returns nil where the recorder did not look at the devices at all.
func (c *collector) deviceReport(info trace.Info, s *Summary) *DeviceReport {
	status := info["nvml"]
	if status == "" && len(c.samples.devices) == 0 || c.filter.narrowed() {
		return nil
	}
	r := &DeviceReport{Status: "on", Notes: []string{}, Devices: []DeviceSamples{}}
	if why, off := strings.CutPrefix(status, "off: "); off {
		r.Status, r.Why = "off", why
	} else if why, stopped := strings.CutPrefix(status, "stopped: "); stopped {
		r.Why = why
	}
	for _, key := range []string{"nvml.share", "nvml.list", "nvml.slice", "nvml.device", "nvml.exit"} {
		if info[key] != "" && (key != "nvml.device" || !c.allSampled(s)) {
			r.Notes = append(r.Notes, info[key])
		}
	}
	c.noteAsked()
	for slot := range c.samples.devices {
		if book := &c.samples.devices[slot]; book.count > 0 {
			r.Devices = append(r.Devices, DeviceSamples{Index: int16(slot - 1), SampleCount: book.count, Ledgers: c.deviceLedgers(slot, s), Samples: book.list})
		}
	}
	return r
}

// allSampled reports whether every device that the program used was sampled at some time: then an answer before that, such as that nothing was in use, was only early.
func (c *collector) allSampled(s *Summary) bool {
	for _, d := range s.Devices {
		if slot := int(d.Index) + 1; d.Driver.AllocCount > 0 && (slot >= len(c.samples.devices) || c.samples.devices[slot].count == 0) {
			return false
		}
	}
	return len(s.Devices) > 0
}

// deviceLedgers makes the ledgers of a device: at the moment that was asked for, or at the highest and at the last sample.
func (c *collector) deviceLedgers(slot int, s *Summary) []DeviceLedger {
	book := &c.samples.devices[slot]
	list := []DeviceLedger{}
	add := func(m *deviceMoment, label string) {
		for g := range c.groupings {
			if m != nil {
				list = append(list, c.deviceLedger(slot, m, g, label, s))
			}
		}
	}
	if !c.want.IsZero() {
		add(book.nearestTo(c.want), c.want.String())
		return list
	}
	if book.highest != book.latest {
		add(book.highest, MomentHighest)
	}
	add(book.latest, MomentLast)
	return list
}

func (c *collector) deviceLedger(slot int, m *deviceMoment, g int, label string, s *Summary) DeviceLedger {
	l := DeviceLedger{By: c.groupings[g].name, Moment: label, Sample: m.sample, Rows: c.trackedRows(m, g),
		PartialPageBytes: m.sizes.partialPages()}
	for _, d := range s.Devices {
		if d.Index == int16(slot-1) {
			l.TotalBytes = d.TotalBytes
		}
	}
	v := &m.sample
	add := func(owner string, bytes int64, always bool) {
		if bytes != 0 || always {
			l.Rows = append(l.Rows, DeviceRow{Owner: owner, Bytes: bytes})
		}
	}
	add(OwnerRounding, int64(m.sizes.RoundedBytes-m.sizes.RequestedBytes), false)
	add(OwnerPoolIdle, int64(m.sizes.PoolIdleBytes), false)
	add(OwnerGraphPool, int64(m.sizes.GraphPoolBytes), false)
	add(OwnerContext, int64(v.ContextBytes), false)
	add(OwnerOthers, int64(v.OthersBytes), false)
	add(OwnerKept, int64(v.KeptBytes), false)
	var unlisted int64
	if v.ShareKnown {
		unlisted = int64(v.UsedBytes - v.OwnBytes - v.OthersBytes - v.KeptBytes)
	}
	add(OwnerUnlisted, unlisted, false)
	add(OwnerRemainder, v.RemainderBytes-unlisted, true)
	return l
}

// trackedRows lists the owners of the driver's memory on a device, which the rows add up to: a framework's blocks, its allocator's slack and the memory of other
// libraries, or without a framework the driver's blocks. A framework that took no driver memory under its own name has what is there through another library, and
// then nothing is outside.
func (c *collector) trackedRows(m *deviceMoment, g int) []DeviceRow {
	if c.details[AccountFramework].total.allocs == 0 {
		rows, _ := c.blockRows(m, AccountDriver, g)
		return rows
	}
	rows, blocks := c.blockRows(m, AccountFramework, g)
	slack := int64(m.sizes.RequestedBytes) - blocks
	var outside []DeviceRow
	if c.holding.fromDriver() {
		for _, r := range c.outsideRows(m.byLibrary) {
			outside = append(outside, DeviceRow{Owner: r.Owner, Key: r.Key, Bytes: int64(r.Bytes)})
			slack -= int64(r.Bytes)
		}
	}
	if slack != 0 {
		rows = append(rows, DeviceRow{Owner: OwnerSlack, Bytes: slack})
	}
	return append(rows, outside...)
}

// blockRows lists an account's keys, most first, and their sum.
func (c *collector) blockRows(m *deviceMoment, a Account, g int) (rows []DeviceRow, sum int64) {
	rows = []DeviceRow{}
	for _, r := range c.namedRows(g, m.held[a]) {
		rows = append(rows, DeviceRow{Owner: OwnerBlocks, Key: r.Key, Label: r.Label, Bytes: int64(r.LiveBytes)})
		sum += int64(r.LiveBytes)
	}
	return rows, sum
}
