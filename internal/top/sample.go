package top

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"memtrace/cuda/nvml"
)

// schema names the shape of top's JSON. Its number grows only when something is changed or taken away.
const schema = "memtrace.top/1"

// sample is what top knows at one moment. Sizes are bytes; nil is unknown. The json names are published in
// docs/top.md.
type sample struct {
	Schema    string     `json:"schema"`
	Time      time.Time  `json:"time"`
	NVML      nvmlStatus `json:"nvml"`
	Devices   []device   `json:"devices"`
	Processes []process  `json:"processes"`

	folder string // see finder
}

type nvmlStatus struct {
	Available bool   `json:"available"`
	Driver    string `json:"driver_version"`
	CUDA      string `json:"cuda_version"`
	Problem   string `json:"problem"` // why the query failed, and what to do
}

type device struct {
	Index       int      `json:"index"`
	Instance    *int     `json:"instance"` // of a MIG instance its number on the GPU
	Name        string   `json:"name"`
	UUID        string   `json:"uuid"`
	MIG         bool     `json:"mig"` // divided: the processes are listed with the instances
	Total       *uint64  `json:"total_bytes"`
	Used        *uint64  `json:"used_bytes"`
	Free        *uint64  `json:"free_bytes"`
	Reserved    *uint64  `json:"reserved_bytes"`
	Utilization *uint32  `json:"utilization_percent"`
	Problems    []string `json:"problems"`
}

type process struct {
	PID     int        `json:"pid"`
	User    string     `json:"user"`
	Command string     `json:"command"`
	Devices []share    `json:"devices"`
	Traced  bool       `json:"traced"`
	Trace   string     `json:"trace"`
	Owners  *ownership `json:"owners"` // nil for a process that is not recorded, or was not read yet
	// what the devices report, less what the trace holds: the CUDA context and code, mostly
	Untracked *int64 `json:"untracked_bytes"`
	Problem   string `json:"problem"` // why owners are missing
	// how much of the trace was read, while it is read for the first time
	Reading *float64 `json:"reading_fraction"`
}

// share is a process's part of a device.
type share struct {
	Index    int     `json:"index"`
	Instance *int    `json:"instance"`
	UUID     string  `json:"uuid"`
	Used     *uint64 `json:"used_bytes"`
	Compute  bool    `json:"compute"`
	Graphics bool    `json:"graphics"`
}

func (p *process) on(d *device) *share {
	for i := range p.Devices {
		if s := &p.Devices[i]; s.Index == d.Index && sameInstance(s.Instance, d.Instance) {
			return s
		}
	}
	return nil
}

func sameInstance(a, b *int) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

// used sums what the devices report of the process; ok is false if one of them does not report it, or none lists it.
func (p *process) used() (sum uint64, ok bool) {
	for _, s := range p.Devices {
		if s.Used == nil {
			return 0, false
		}
		sum += *s.Used
	}
	return sum, len(p.Devices) > 0
}

// weight orders processes by memory: what the devices report, else what the trace holds.
func (p *process) weight() uint64 {
	if used, ok := p.used(); ok {
		return used
	}
	if p.Owners != nil {
		return p.Owners.DriverBytes
	}
	return 0
}

func writeJSON(w io.Writer, s sample) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(s)
}

// management is NVIDIA's management library.
type management interface {
	Read() (nvml.Snapshot, error)
	Close() error
}

func openManagement() (management, error) {
	library, err := nvml.Open()
	if err != nil {
		return nil, err
	}
	return library, nil
}

// sampler collects samples, one at a time.
type sampler struct {
	mu       sync.Mutex // held while a sample is taken
	host     *Host
	flags    *Options
	library  management // nil without one
	problem  error      // why there is none
	asked    time.Time
	snapshot nvml.Snapshot // the answer
	failure  error
	finder   *finder
	readers  map[recordingKey]*reader
	users    userNames
	open     func() (management, error)
	by       atomic.Pointer[string] // what owners are grouped by
}

func newSampler(host *Host, flags *Options, args []string) *sampler {
	finder := newFinder(host, args)
	finder.pids = flags.PIDs
	t := &sampler{host: host, flags: flags, finder: finder, readers: make(map[recordingKey]*reader),
		users: userNames{}, open: openManagement}
	t.by.Store(&flags.By)
	return t
}

// close releases everything, unless a sample is being taken: then the command is about to end, and a driver that does
// not answer must not delay it.
func (t *sampler) close() {
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	if t.library != nil {
		_ = t.library.Close() // the error has no reader left
	}
	for _, r := range t.readers {
		r.close()
	}
}

// sample looks once. It waits at most so long for the traces to be read to their present ends; what takes longer goes
// on beside, and the sample has what was read before.
func (t *sampler) sample(patience time.Duration) sample {
	return t.take(patience, (*reader).advance)
}

// last is a sample for which every trace is read once more, also those that were read a moment ago.
func (t *sampler) last(patience time.Duration) sample {
	return t.take(patience, (*reader).latest)
}

func (t *sampler) take(patience time.Duration, read func(*reader) <-chan struct{}) sample {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := sample{Schema: schema, Time: time.Now(), Devices: []device{}, Processes: []process{},
		folder: t.finder.folder}
	byPID := map[int]*process{}
	t.follow(byPID, patience, read)
	// The devices after the traces: what is read last is the smaller part, so that both show nearly the same moment.
	t.queryDevices(&s, byPID)
	for _, p := range byPID {
		if p.Owners != nil {
			p.setUntracked()
		}
		if len(t.flags.Devices) == 0 || len(p.Devices) > 0 || !s.NVML.Available {
			s.Processes = append(s.Processes, *p)
		}
	}
	slices.SortFunc(s.Processes, func(a, b process) int {
		return cmp.Or(cmp.Compare(b.weight(), a.weight()), cmp.Compare(a.PID, b.PID))
	})
	return s
}

// follow finds the recorded processes and lets each one's reader go on.
func (t *sampler) follow(byPID map[int]*process, patience time.Duration, read func(*reader) <-chan struct{}) {
	found := t.finder.find(time.Now())
	alive := make(map[recordingKey]bool, len(found))
	var reading []<-chan struct{}
	for _, f := range found {
		alive[f.key] = true
		r := t.readers[f.key]
		if r != nil && r.found != f { // more of it was found
			r.close()
			r = nil
		}
		by := *t.by.Load()
		if r == nil {
			r = newReader(t.host, f, by, t.flags.metrics())
			t.readers[f.key] = r
		}
		r.divideBy(by)
		if done := read(r); done != nil {
			reading = append(reading, done)
		}
	}
	waitFor(reading, patience)
	for _, f := range found {
		p := t.processOf(byPID, f.key.pid)
		p.Traced, p.Trace = true, f.trace
		p.Owners, p.Problem, p.Reading = t.readers[f.key].state()
	}
	for key, r := range t.readers {
		if !alive[key] {
			r.close()
			delete(t.readers, key)
		}
	}
}

// waitFor returns when all channels are closed, or when patience has run out.
func waitFor(list []<-chan struct{}, patience time.Duration) {
	timeout := time.After(patience)
	for _, done := range list {
		select {
		case <-done:
		case <-timeout:
			return
		}
	}
}

func (t *sampler) processOf(byPID map[int]*process, pid int) *process {
	p := byPID[pid]
	if p == nil {
		user, command := t.users.describe(pid)
		p = &process{PID: pid, User: user, Command: command, Devices: []share{}}
		byPID[pid] = p
	}
	return p
}

// queryDevices fills in what the management library reports.
func (t *sampler) queryDevices(s *sample, byPID map[int]*process) {
	if t.library == nil && t.problem == nil {
		t.library, t.problem = t.open()
	}
	if t.problem != nil {
		s.NVML.Problem = t.problem.Error()
		if errors.Is(t.problem, nvml.ErrNoLibrary) || errors.Is(t.problem, nvml.ErrNotBuilt) {
			s.NVML.Problem = "devices are not shown: " + s.NVML.Problem
		}
		return
	}
	if s.Time.Sub(t.asked) >= t.flags.Interval*3/4 { // samples come sooner while a trace is read for the first time
		t.asked = s.Time
		t.snapshot, t.failure = t.library.Read()
	}
	snapshot, err := t.snapshot, t.failure
	s.NVML = nvmlStatus{Available: true, Driver: snapshot.Driver, CUDA: snapshot.CUDA}
	if err != nil {
		s.NVML.Problem = err.Error()
	}
	t.addDevices(s, snapshot.Devices, byPID)
	if len(s.Devices) == 0 && len(snapshot.Devices) > 0 {
		s.NVML.Problem = fmt.Sprintf("there is no such device: the last one is %d",
			snapshot.Devices[len(snapshot.Devices)-1].Index)
	}
}

func (t *sampler) addDevices(s *sample, devices []nvml.Device, byPID map[int]*process) {
	for _, d := range devices {
		if len(t.flags.Devices) > 0 && !slices.Contains(t.flags.Devices, d.Index) {
			continue
		}
		row := device{Index: d.Index, Name: d.Name, UUID: d.UUID, MIG: d.MIG, Utilization: d.Utilization,
			Problems: append([]string{}, d.Problems...)}
		if d.Instance != nvml.NoInstance {
			row.Instance = &d.Instance
		}
		if m := d.Memory; m != nil {
			row.Total, row.Used, row.Free, row.Reserved = &m.Total, &m.Used, &m.Free, &m.Reserved
		}
		s.Devices = append(s.Devices, row)
		for _, p := range d.Processes {
			if len(t.flags.PIDs) > 0 && !slices.Contains(t.flags.PIDs, int(p.PID)) {
				continue
			}
			share := share{Index: d.Index, Instance: row.Instance, UUID: d.UUID, Used: p.Used, Compute: p.Compute,
				Graphics: p.Graphics}
			entry := t.processOf(byPID, int(p.PID))
			entry.Devices = append(entry.Devices, share)
		}
	}
}

// setUntracked compares what the devices report of the process with what its trace holds of those devices. Devices are
// matched by UUID; without one, as some containers hide it, only a process that has a single device is.
func (p *process) setUntracked() {
	used, ok := p.used()
	if !ok {
		return
	}
	var tracked uint64
	for _, s := range p.Devices {
		bytes, known := p.Owners.on(s.UUID)
		if !known {
			if len(p.Devices) > 1 || len(p.Owners.Devices) > 1 {
				return
			}
			bytes = p.Owners.DriverBytes
		}
		tracked += bytes
	}
	rest := int64(used - tracked)
	p.Untracked = &rest
}
