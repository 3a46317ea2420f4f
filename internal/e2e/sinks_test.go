//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/guest"
)

// trackers installs wandb and mlflow for a Python and returns the folder of their packages.
func trackers(t *testing.T, python string) string {
	t.Helper()
	install := exec.Command("scripts/python-tools.sh", "internal/tools/sinks-requirements.txt")
	install.Dir, install.Stderr, install.Env = guest.Root(), os.Stderr, append(os.Environ(), "PYTHON="+python)
	out, err := install.Output()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(filepath.Dir(strings.TrimSpace(string(out))), "lib", "python3.*",
		"site-packages"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	return found[0]
}

// A PyTorch program sends its figures to wandb, offline, and to mlflow. Both keep what PyTorch counted, and the
// program's own rows of wandb keep their steps.
func TestSinks(t *testing.T) {
	t.Parallel()
	extended(t)
	cmd, _ := program{framework: torch27, args: []string{"sinks.py", t.TempDir()}}.start(t)
	python, err := exec.LookPath(filepath.Join(venv(t, torch27, ""), "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Args[len(cmd.Args)-2] = filepath.Join(guest.Root(), "testdata", "python", "sinks.py")
	for i, line := range cmd.Env {
		if path, found := strings.CutPrefix(line, "PYTHONPATH="); found {
			cmd.Env[i] = "PYTHONPATH=" + path + ":" + trackers(t, python)
		}
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, complaints.Bytes())
	}
	var kept struct {
		Allocated float64              `json:"allocated"`
		Wandb     []map[string]float64 `json:"wandb"`
		Mlflow    map[string]float64   `json:"mlflow"`
	}
	if err := json.Unmarshal(out[max(bytes.LastIndex(out, []byte("\n{")), 0):], &kept); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if strings.Contains(complaints.String(), "no more figures") {
		t.Error(complaints.String())
	}
	const key, parameters = "memtrace/device0/framework_bytes", "memtrace/device0/category/Parameters"
	same(t, "mlflow's bytes", kept.Mlflow[key], kept.Allocated)
	same(t, "mlflow's parameters", kept.Mlflow[parameters], 2*4*1024*(1024+1))
	var last float64
	var steps []float64
	for _, row := range kept.Wandb {
		if bytes, found := row[key]; found {
			last = bytes
			if _, dated := row["memtrace/seconds"]; !dated {
				t.Errorf("a row without its time: %v", row)
			}
		}
		if loss, found := row["loss"]; found {
			steps = append(steps, row["_step"])
			same(t, "the program's row", row["_step"], 10*loss)
		}
	}
	same(t, "wandb's bytes", last, kept.Allocated)
	if len(steps) != 5 {
		t.Errorf("of the program's rows, there are those of steps %v", steps)
	}
}
