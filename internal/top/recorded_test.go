package top

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/cuda/nvml"
	"memtrace/internal/control"
	"memtrace/internal/guest"
)

// startRecorder starts a program that has recorded 202 blocks of 512 bytes and stays, with control sockets in a folder.
func startRecorder(t *testing.T, folder string) (pid int, trace string) {
	t.Helper()
	trace = filepath.Join(t.TempDir(), "r.bin")
	cmd := exec.Command(guest.Recorder(t, "testdata/guest/recorder.c"), "2", "100", "linger")
	cmd.Env = append(os.Environ(), "MEMTRACE_OUTPUT="+trace, control.FolderVariable+"="+folder)
	cmd.Stderr = os.Stderr
	guest.Running(t, cmd) // everything is recorded
	return cmd.Process.Pid, trace
}

// A recorded process is found by its spool and shown with the owners of its memory, on the page and in metrics; in a
// view with a folder of control sockets, only in that of its own, or named. Nothing else that is recorded on this
// machine is in the way.
func TestTopOfARecordedProcess(t *testing.T) {
	folder := t.TempDir()
	pid, trace := startRecorder(t, folder)
	shown := func(in string, flags Options, args ...string) sample {
		t.Helper()
		t.Setenv(control.FolderVariable, in)
		flags.Interval = MinInterval
		sampler := newSampler(testHost, &flags, args)
		sampler.open = func() (management, error) { return nil, nvml.ErrNoLibrary }
		defer sampler.close()
		return sampler.sample(math.MaxInt64)
	}
	for _, flags := range []Options{{}, {By: "thread"}, {Listen: "x"}, {PIDs: []int{pid}}} {
		s := shown(folder, flags)
		if len(s.Processes) != 1 {
			t.Fatalf("%+v: %d processes", flags, len(s.Processes))
		}
		p := s.Processes[0]
		if p.PID != pid || !p.Traced || p.Trace != trace || p.Owners == nil || p.Owners.FrameworkBytes != 202*512 {
			t.Errorf("%+v: %+v", flags, p)
		}
		if text := pageText(s, true); !strings.Contains(text, "Recorded processes") ||
			!strings.Contains(text, "101.0 KiB") {
			t.Error(text)
		}
	}
	s := shown(folder, Options{Listen: "x"})
	if got := series(t, newMetricState().families(&s)); len(s.Processes[0].Owners.parts) != 1 ||
		got["memtrace_processes{recorded=true}"] != 1 {
		t.Errorf("%+v", got)
	}
	other := t.TempDir()
	if s := shown(other, Options{}); len(s.Processes) != 0 {
		t.Errorf("in another folder: %+v", s.Processes)
	}
	if s := shown(other, Options{PIDs: []int{pid}}); len(s.Processes) != 1 {
		t.Errorf("named by its number: %+v", s.Processes)
	}
	if s := shown(other, Options{}, trace); len(s.Processes) != 1 {
		t.Errorf("named by its trace: %+v", s.Processes)
	}
	if err := errors.Join(os.Remove(trace+".spool"), os.WriteFile(trace, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if s := shown(folder, Options{}); len(s.Processes) != 0 {
		t.Errorf("its spool is gone: %+v", s.Processes)
	}
}
