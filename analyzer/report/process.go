package report

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"memtrace/trace"
)

// ProcessOf returns the process described in info, without its end.
func ProcessOf(info trace.Info) Process {
	p := Process{Command: info["process.command"], Args: []string{}, Exe: info["process.exe"],
		Host: info["process.host"], Signal: info[trace.SignalKey]}
	p.PID, _ = strconv.ParseInt(info["process.pid"], 10, 64)
	if argv := strings.TrimSuffix(info["process.argv"], "\x00"); argv != "" {
		p.Args = strings.Split(argv, "\x00")
	}
	if status, err := strconv.ParseUint(info[trace.ExitStatusKey], 10, 8); err == nil {
		p.ExitStatus = new(int(status))
	}
	if ns, err := strconv.ParseInt(info["process.start_unix_ns"], 10, 64); err == nil {
		p.Started = time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
	}
	if ns, err := strconv.ParseInt(info[trace.StartAfterKey], 10, 64); err == nil && ns > 0 {
		p.BeganAfterNS = ns
	}
	p.Stopped, p.Snapshot = info[trace.StopKey], info[trace.SnapshotKey] != ""
	p.Rank = firstNumber(info, "env.RANK", "env.OMPI_COMM_WORLD_RANK", "env.PMIX_RANK", "env.PMI_RANK",
		"env.SLURM_PROCID", "env.MV2_COMM_WORLD_RANK")
	if n := firstNumber(info, "env.WORLD_SIZE", "env.OMPI_COMM_WORLD_SIZE", "env.PMI_SIZE", "env.SLURM_NTASKS",
		"env.MV2_COMM_WORLD_SIZE"); n != nil {
		p.WorldSize = *n
	}
	p.Job = info["env.SLURM_JOB_ID"]
	p.Container, p.Pod = containerOf(info["process.cgroup"]), info["env.POD_NAME"]
	if p.Pod == "" {
		p.Pod = podOf(info["process.cgroup"])
	}
	if p.Imported = info["import.kind"]; p.Imported != "" && info["import.brief"] != "" {
		p.Imported += ": " + info["import.brief"]
	}
	return p
}

// SameAs reports whether two traces are of one recording of a process: a trace and its profile, or a copy of it. Copies
// that were made to be shared lack the host and the job. Of containers, several may have begun at once, each with
// process 1. Snapshots are the same if they are of one moment.
func (p *Process) SameAs(o *Process) bool {
	return p.PID != 0 && p.PID == o.PID && p.Started != "" && p.Started == o.Started &&
		mayBe(p.Host, o.Host) && mayBe(p.Job, o.Job) && mayBe(p.Container, o.Container) &&
		(p.Rank == nil || o.Rank == nil || *p.Rank == *o.Rank) && p.Snapshot == o.Snapshot &&
		(!p.Snapshot || p.DurationNS == o.DurationNS)
}

func mayBe(a, b string) bool { return a == b || a == "" || b == "" }

// firstNumber is the first of some values that is a number as ranks are; nil if none is.
func firstNumber(info trace.Info, keys ...string) *int {
	for _, key := range keys {
		if n, err := strconv.ParseUint(info[key], 10, 31); err == nil {
			return new(int(n))
		}
	}
	return nil
}

// Control groups contain the container's whole id, and Kubernetes the pod's.
var (
	containerID = regexp.MustCompile(`(?:^|[^0-9a-f])([0-9a-f]{64})(?:\.scope)?(?:$|[^0-9a-f])`)
	podID       = regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})`)
)

// containerOf finds the container in the text of /proc/PID/cgroup.
func containerOf(cgroup string) string {
	if m := containerID.FindStringSubmatch(cgroup); m != nil {
		return m[1][:12]
	}
	return ""
}

func podOf(cgroup string) string {
	if m := podID.FindStringSubmatch(cgroup); m != nil {
		return strings.ReplaceAll(m[1], "_", "-")
	}
	return ""
}

// AddPools adds pools of the program to the versions: they report blocks as frameworks do.
func AddPools(versions map[string]string, names []string) {
	switch len(names) {
	case 0:
	case 1:
		versions["pool"] = names[0]
	default:
		versions["pools"] = strings.Join(names, ", ")
	}
}

// Versions returns the versions of CUDA, Python and frameworks in info, by name.
func Versions(info trace.Info) map[string]string {
	v := make(map[string]string)
	for key, value := range info {
		if name, ok := strings.CutPrefix(key, "framework."); ok && value != "" {
			v[name] = value
		}
	}
	for key, name := range map[string]string{"cuda.driver_version": "cuda_driver",
		"cuda.runtime_version": "cuda_runtime", "python.version": "python",
		"library.version": "memtrace"} {
		if info[key] != "" {
			v[name] = info[key]
		}
	}
	return v
}

// Process is the recorded process.
type Process struct {
	PID        int64    `json:"pid"` // 0 if unknown
	Command    string   `json:"command"`
	Args       []string `json:"args"`
	Exe        string   `json:"exe"`
	Host       string   `json:"host"`
	Started    string   `json:"started"`          // RFC 3339 in UTC, "" if unknown
	Ended      string   `json:"ended"`            // EndedClean, EndedKilled, EndedRunning or EndedUnknown
	Signal     string   `json:"signal,omitempty"` // that ended it, such as "SIGFPE"; "" unknown
	DurationNS int64    `json:"duration_ns"`
	Rank       *int     `json:"rank,omitempty"`       // in a distributed run; nil if it is unknown to be one
	WorldSize  int      `json:"world_size,omitempty"` // how many ranks there are; 0 unknown
	Job        string   `json:"job,omitempty"`        // number that Slurm gave the job; "" unknown
	// id of the container that the process ran in, shortened as container tools do; "" outside, or unknown
	Container string `json:"container,omitempty"`
	Pod       string `json:"pod,omitempty"` // of Kubernetes: its name, or its id; "" outside, or unknown
	// what the program passed to exit, 0 to 255; nil if it did not or that is not known
	ExitStatus *int `json:"exit_status,omitempty"`

	// how long the process had run when recording began; 0 where it began with the program, or unknown
	BeganAfterNS int64 `json:"began_after_ns,omitempty"`
	// what stopped the recording while the program continued, such as "memtrace ctl"; "" if nothing did
	Stopped  string `json:"stopped,omitempty"`
	Snapshot bool   `json:"snapshot,omitempty"` // the trace holds only what was live at one moment
	// what file of another tool the trace was made from, and what that lacks in short; "" if memtrace recorded it
	Imported string `json:"imported,omitempty"`
}

// StackHealth counts the allocations of both levels by the completeness of their call stacks.
type StackHealth struct {
	AllocCount  uint64            `json:"alloc_count"`
	NoneCount   uint64            `json:"without_stack"` // neither a native nor a Python stack
	PythonCount uint64            `json:"with_python"`   // with Python frames
	NativeCut   map[string]uint64 `json:"native_cut"`    // native stacks that are not whole, by the reason
	PythonCut   map[string]uint64 `json:"python_cut"`    // Python stacks that are not whole, by the reason
	CutCount    uint64            `json:"cut"`           // of which one of the two is not whole
	CallerOnly  uint64            `json:"caller_only"`   // only the caller was requested
}
