package report

import (
	"strconv"
	"strings"
	"time"

	"memtrace/trace"
)

// ProcessOf takes from info who ran, which leaves out how it ended.
func ProcessOf(info trace.Info) Process {
	p := Process{Command: info["process.command"], Args: []string{}, Exe: info["process.exe"], Host: info["process.host"], Signal: info[trace.SignalKey]}
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
	return p
}

// Versions takes from info which versions of CUDA, Python and frameworks ran, by name.
func Versions(info trace.Info) map[string]string {
	v := make(map[string]string)
	for key, value := range info {
		if name, ok := strings.CutPrefix(key, "framework."); ok && value != "" {
			v[name] = value
		}
	}
	for key, name := range map[string]string{"cuda.driver_version": "cuda_driver", "cuda.runtime_version": "cuda_runtime", "python.version": "python",
		"library.version": "memtrace"} {
		if info[key] != "" {
			v[name] = info[key]
		}
	}
	return v
}
