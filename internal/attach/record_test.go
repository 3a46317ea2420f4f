package attach

import (
	"os/exec"
	"strings"
	"testing"

	"memtrace/internal/cli"
	"memtrace/internal/guest"
)

// "memtrace ctl PID" advised to attach to a shell, which has no CUDA, and to a process that has a limit on its memory.
func TestNoAdviceToAttachInVain(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"echo up; read line":                                   "has loaded neither CUDA nor Python",
		"ulimit -v 100000; echo up; read line":                 "nothing can be attached: the limit of process",
		"exec python3 -c 'print(\"up\", flush=True); input()'": "to record it, type: memtrace attach ",
	} {
		cmd := exec.Command("sh", "-c", script)
		guest.Running(t, cmd)
		_, err := (&Recorder{Console: &cli.Console{}}).Request(cmd.Process.Pid, "status")
		if err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "type: memtrace attach") != strings.HasPrefix(want, "to record it") {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
}
