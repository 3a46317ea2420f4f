package report

// Recordings finds processes that are given more than once, such as by a trace and by its profile. The zero value has
// seen none.
type Recordings struct {
	seen map[recordingKey][]recording
}

// recordingKey is what all files of a process have in common.
type recordingKey struct {
	pid     int64
	started string
}

type recording struct {
	path    string
	process *Process
}

// Seen returns the file that the same process was seen in before, "" if it was not, and notes the process.
func (r *Recordings) Seen(path string, p *Process) (first string) {
	key := recordingKey{p.PID, p.Started}
	for _, known := range r.seen[key] {
		if known.process.SameAs(p) {
			return known.path
		}
	}
	if r.seen == nil {
		r.seen = map[recordingKey][]recording{}
	}
	r.seen[key] = append(r.seen[key], recording{path, p})
	return ""
}
