package top

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/metrics"
	"memtrace/internal/rules"
	"memtrace/internal/version"
)

// Bounds on the number of series; docs/metrics.md has the totals.
const (
	maxMetricProcesses = 64 // the largest ones
	maxMetricOwners    = 20 // of a process on a device
	maxMetricKeys      = 20 // categories, likewise
)

// metricState turns samples into metrics. Names are published in docs/metrics.md; those of devices are OpenTelemetry's,
// as its rules for Prometheus write them.
type metricState struct {
	choosers map[chooserKey]*metrics.Chooser
}

// chooserKey names what one Chooser divides.
type chooserKey struct {
	pid    int
	device int16
	label  string
}

func newMetricState() *metricState {
	return &metricState{choosers: make(map[chooserKey]*metrics.Chooser)}
}

// metricSet has a family for each name, in the order in which they are written.
type metricSet struct {
	metrics *metricState
	sample  *sample

	build, nvmlUp, processes, leftOut metrics.Family
	limit, usage, utilization         metrics.Family
	process, readable, readTime       metrics.Family
	occupied, remainder               metrics.Family
	live, peak, slack, owner          metrics.Family
	category, other                   metrics.Family
	allocations, allocated            metrics.Family
	ooms, lost, growth, grown         metrics.Family
}

func newMetricSet(m *metricState, s *sample) *metricSet {
	const bytes = "bytes"
	return &metricSet{metrics: m, sample: s,
		build: metrics.Family{Name: "memtrace_build", Type: metrics.Info,
			Help: "The version of memtrace that made these metrics."},
		nvmlUp: metrics.Family{Name: "memtrace_nvml_up",
			Help: "Whether NVIDIA's management library answers: 1 or 0."},
		processes: metrics.Family{Name: "memtrace_processes",
			Help: "Processes that were found, recorded by memtrace or not."},
		leftOut: metrics.Family{Name: "memtrace_processes_left_out",
			Help: "Processes that were found and have no series here, because there are too many."},

		limit: metrics.Family{Name: "hw_gpu_memory_limit_bytes", Unit: bytes,
			Help: "Size of the device's memory."},
		usage: metrics.Family{Name: "hw_gpu_memory_usage_bytes", Unit: bytes,
			Help: "Memory of the device in use, by all processes."},
		utilization: metrics.Family{Name: "hw_gpu_utilization_ratio", Unit: "ratio",
			Help: "Share of the last moment in which the device ran kernels, 0 to 1."},

		process: metrics.Family{Name: "memtrace_process", Type: metrics.Info,
			Help: "A process that uses a device, or that memtrace records."},
		readable: metrics.Family{Name: "memtrace_trace_readable",
			Help: "Whether the trace of a recorded process can be read: 1 or 0."},
		readTime: metrics.Family{Name: "memtrace_read_timestamp_seconds", Unit: "seconds",
			Help: "When the trace was read that the figures of the process come from, in seconds since 1970."},
		occupied: metrics.Family{Name: "memtrace_device_memory_bytes", Unit: bytes,
			Help: "Memory that the process occupies on the device, as the driver says."},
		remainder: metrics.Family{Name: "memtrace_remainder_bytes", Unit: bytes,
			Help: "Memory that the driver reports for the process beyond what its trace accounts for: context, code, reserves. Negative if the trace is slightly ahead."},

		live: metrics.Family{Name: "memtrace_memory_bytes", Unit: bytes,
			Help: "Live memory, at the level of the driver's allocations and at that of the framework's blocks inside them."},
		peak: metrics.Family{Name: "memtrace_memory_peak_bytes", Unit: bytes, Help: "The most that was ever live."},
		slack: metrics.Family{Name: "memtrace_slack_bytes", Unit: bytes,
			Help: "Memory that the framework's allocator holds in no block. Negative if the framework counts more than the driver gave it."},
		owner: metrics.Family{Name: "memtrace_owner_memory_bytes", Unit: bytes,
			Help: "Live memory by owner: the framework's blocks by tag or place, and what libraries took from the driver beside them. The owners and the slack add up to the driver's level."},
		category: metrics.Family{Name: "memtrace_category_memory_bytes", Unit: bytes,
			Help: "Live blocks by what they are for."},
		other: metrics.Family{Name: "memtrace_other_memory_bytes", Unit: bytes,
			Help: "Live memory that does not permanently occupy a device: managed, pinned, registered."},

		allocations: metrics.Family{Name: "memtrace_allocations", Type: metrics.Counter,
			Help: "Allocations since the process began."},
		allocated: metrics.Family{Name: "memtrace_allocated_bytes", Unit: bytes, Type: metrics.Counter,
			Help: "Bytes of all allocations since the process began."},
		ooms: metrics.Family{Name: "memtrace_out_of_memory", Type: metrics.Counter,
			Help: "Times at which memory ran out: the program did not get it (failed), or got it after something was given back (recovered)."},
		lost: metrics.Family{Name: "memtrace_lost_records", Type: metrics.Counter,
			Help: "Records that did not fit the spool: where there are any, live memory is uncertain."},
		growth: metrics.Family{Name: "memtrace_growth_bytes_per_second", Unit: "bytes_per_second",
			Help: "How fast memory grows that call stacks never give back; 0 where nothing does, absent while that cannot be told, and on the null GPU, where seconds say nothing."},
		grown: metrics.Family{Name: "memtrace_growth_bytes", Unit: bytes,
			Help: "By how much memory has grown that call stacks never give back; 0 where nothing grows, absent while that cannot be told."},
	}
}

func (s *metricSet) families() []*metrics.Family {
	return []*metrics.Family{&s.build, &s.nvmlUp, &s.processes, &s.leftOut, &s.limit, &s.usage, &s.utilization,
		&s.process, &s.readable, &s.readTime, &s.occupied, &s.remainder,
		&s.live, &s.peak, &s.slack, &s.owner, &s.category, &s.other, &s.allocations, &s.allocated, &s.ooms,
		&s.lost, &s.growth, &s.grown}
}

// families makes metrics of a sample.
func (t *metricState) families(sample *sample) []*metrics.Family {
	s := newMetricSet(t, sample)
	s.build.Add(1, metrics.Label{Name: "version", Value: version.String})
	s.nvmlUp.Add(number(sample.NVML.Available))
	for i := range sample.Devices {
		s.addDevice(&sample.Devices[i])
	}
	shown, counts := 0, map[bool]int{}
	alive := make(map[int]bool, len(sample.Processes))
	for _, traced := range []bool{true, false} { // recorded ones are not pushed out by others
		for i := range sample.Processes {
			p := &sample.Processes[i]
			if p.Traced != traced {
				continue
			}
			counts[traced]++
			if shown++; shown <= maxMetricProcesses {
				alive[p.PID] = true
				s.addProcess(p)
			}
		}
	}
	s.processes.Add(float64(counts[true]), metrics.Label{Name: "recorded", Value: "true"})
	s.processes.Add(float64(counts[false]), metrics.Label{Name: "recorded", Value: "false"})
	s.leftOut.Add(float64(max(shown-maxMetricProcesses, 0)))
	for key := range t.choosers {
		if !alive[key.pid] {
			delete(t.choosers, key)
		}
	}
	return s.families()
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (s *metricSet) addDevice(d *device) {
	labels := []metrics.Label{{Name: "hw_id", Value: d.UUID}, {Name: "hw_name", Value: d.Name},
		{Name: "hw_vendor", Value: "NVIDIA"}, {Name: "device", Value: strconv.Itoa(d.Index)}}
	if d.Instance != nil {
		labels = append(labels, metrics.Label{Name: "mig_instance", Value: strconv.Itoa(*d.Instance)})
	}
	if d.Total != nil {
		s.limit.Add(float64(*d.Total), labels...)
	}
	if d.Used != nil {
		s.usage.Add(float64(*d.Used), labels...)
	}
	if d.Utilization != nil {
		s.utilization.Add(float64(*d.Utilization)/100, labels...)
	}
}

func (s *metricSet) addProcess(p *process) {
	o := p.Owners
	labels := labelSet{{Name: "process_pid", Value: strconv.Itoa(p.PID)}}
	about := []metrics.Label{{Name: "process_owner", Value: p.User},
		{Name: "process_command", Value: ProgramName(p.Command)},
		{Name: "recorded", Value: strconv.FormatBool(p.Traced)}}
	if o != nil {
		labels = labels.with("rank", RankText(o.Rank))
		about = append(about, metrics.Label{Name: "framework", Value: o.Framework},
			metrics.Label{Name: "container_id", Value: o.container}, metrics.Label{Name: "pod", Value: o.pod})
	}
	s.process.Add(1, append(labels.with(), about...)...)
	if p.Traced && p.Reading == nil {
		s.readable.Add(number(p.Problem == ""), labels...)
	}
	for i := range p.Devices {
		s.addShare(p, &p.Devices[i], labels)
	}
	if o == nil {
		return
	}
	s.readTime.Add(float64(o.ReadAt.UnixMilli())/1000, labels...)
	for i := range o.parts {
		part := &o.parts[i]
		s.addPart(p.PID, part, labels.with("device", s.deviceLabel(part), "hw_id", part.UUID))
	}
	for _, kind := range slices.Sorted(maps.Keys(o.OtherBytes)) {
		s.other.Add(float64(o.OtherBytes[kind]), labels.with("kind", kind)...)
	}
	for _, name := range levels {
		if level := o.levels[name]; !level.Empty() {
			s.allocations.Add(float64(level.AllocCount), labels.with("level", name)...)
			s.allocated.Add(float64(level.AllocBytes), labels.with("level", name)...)
		}
	}
	s.ooms.Add(float64(o.OutOfMemory.Failed), labels.with("outcome", report.OOMFailed)...)
	s.ooms.Add(float64(o.OutOfMemory.Recovered), labels.with("outcome", report.OOMRecovered)...)
	s.lost.Add(float64(o.LostRecords), labels...)
	switch {
	case o.Trend != nil:
		s.grown.Add(float64(o.Trend.Bytes), labels...)
		if o.Trend.BytesPerSecond > 0 {
			s.growth.Add(o.Trend.BytesPerSecond, labels...)
		}
	case o.trendKnown:
		s.grown.Add(0, labels...)
		s.growth.Add(0, labels...)
	}
}

// deviceLabel numbers a device as nvidia-smi does if it is among those that were queried, else as the process does; ""
// if the trace does not identify it.
func (s *metricSet) deviceLabel(part *devicePart) string {
	for _, d := range s.sample.Devices {
		if d.UUID == part.UUID && d.UUID != "" {
			return strconv.Itoa(d.Index)
		}
	}
	if part.Index < 0 {
		return ""
	}
	return strconv.Itoa(int(part.Index))
}

// addShare adds what the driver reports of a process on a device.
func (s *metricSet) addShare(p *process, share *share, labels labelSet) {
	if share.Used == nil {
		return
	}
	labels = labels.with("device", strconv.Itoa(share.Index), "hw_id", share.UUID)
	s.occupied.Add(float64(*share.Used), labels...)
	if p.Owners == nil {
		return
	}
	if part := p.part(share); part != nil {
		s.remainder.Add(float64(int64(*share.Used-part.Levels[levelDriver].LiveBytes)), labels...)
	}
}

// addPart adds what a trace knows of a process on a device.
func (s *metricSet) addPart(pid int, part *devicePart, labels labelSet) {
	for _, name := range levels {
		level, used := part.Levels[name]
		if !used {
			continue
		}
		s.live.Add(float64(level.LiveBytes), labels.with("level", name)...)
		s.peak.Add(float64(level.PeakBytes), labels.with("level", name)...)
	}
	if part.Level == levelFramework {
		s.slack.Add(float64(part.Slack), labels...)
	}
	owners := make(map[string][]metrics.Part)
	for _, row := range part.Rows {
		switch row.Owner {
		case report.OwnerBlocks:
			owners[part.Level] = append(owners[part.Level], metrics.Part{Key: row.Key, Value: float64(row.Bytes)})
		case report.OwnerOutside:
			owners[levelDriver] = append(owners[levelDriver], metrics.Part{Key: row.Key, Value: float64(row.Bytes)})
		}
	}
	for _, level := range levels {
		if len(owners[level]) == 0 {
			continue
		}
		grouping := part.By
		if level != part.Level {
			grouping = "library"
		}
		for _, row := range s.metrics.chooser(pid, part.Index, grouping+" "+level, maxMetricOwners).Choose(
			owners[level]) {
			s.owner.Add(row.Value, labels.with("level", level, "grouping", grouping, "owner", row.Key)...)
		}
	}
	var categories []metrics.Part
	for _, row := range part.Categories {
		key := row.Key
		if key == rules.Others {
			key = metrics.Others
		}
		categories = append(categories, metrics.Part{Key: key, Value: float64(row.Bytes)})
	}
	for _, row := range s.metrics.chooser(pid, part.Index, categoryGrouping, maxMetricKeys).Choose(categories) {
		s.category.Add(row.Value, labels.with("level", part.Level, "category", row.Key)...)
	}
}

func (t *metricState) chooser(pid int, device int16, label string, limit int) *metrics.Chooser {
	key := chooserKey{pid, device, label}
	if t.choosers[key] == nil {
		t.choosers[key] = metrics.NewChooser(limit)
	}
	return t.choosers[key]
}

// labelSet is a list of labels that others are derived from.
type labelSet []metrics.Label

// with returns the labels with further ones, given as names and values.
func (l labelSet) with(pairs ...string) labelSet {
	list := append(make(labelSet, 0, len(l)+len(pairs)/2+1), l...)
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, metrics.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	return list
}

// ProgramName shortens a command line to the names of the program and of the script or module that it runs: its other
// arguments may hold secrets, such as tokens.
func ProgramName(command string) string {
	words := strings.Fields(command)
	if len(words) == 0 {
		return ""
	}
	name := path.Base(words[0])
	if !strings.HasPrefix(name, "python") && !strings.HasPrefix(name, "pypy") {
		return name
	}
	for i, word := range words[1:] {
		switch {
		case word == "-m" && i+2 < len(words):
			return name + " -m " + words[i+2]
		case word == "-c":
			return name + " -c"
		case !strings.HasPrefix(word, "-"):
			return name + " " + path.Base(word)
		}
	}
	return name
}
