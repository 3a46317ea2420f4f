package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/internal/cli"
	"memtrace/internal/launch"
)

const demoLong = `Record a small training run and show its report: what memtrace does, without a program
of yours.

If PyTorch is installed and finds a GPU, PyTorch trains on it. Otherwise a program in C
allocates memory as such a run does, on the null GPU that comes with memtrace: memory is
accounted for, but there is no hardware and nothing is computed. The report names the
device.`

const demoExample = `  memtrace demo
  memtrace demo --python /opt/venv/bin/python
  memtrace demo -o demo.bin && memtrace export flamegraph demo.bin -o demo.svg`

// demoFolders are where the demo's files may be, relative to the folder of this executable: a wheel and a build tree,
// then an installation.
var demoFolders = []string{".", "../lib/memtrace"}

// torchProbe prints PyTorch's version and whether it finds a GPU.
const torchProbe = "import torch; print(torch.__version__, torch.cuda.is_available())"

type demoOptions struct {
	python string
	output string
	force  bool
}

// demoGuest is what the demo records.
type demoGuest struct {
	argv  []string
	env   []string
	words string // which program, on which device
}

func demoCommand(a *app) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:     "demo [flags]",
		Short:   "Record a small training run and show its report",
		Long:    demoLong,
		Example: demoExample,
		Args:    cli.NoArguments,
		RunE:    func(*cobra.Command, []string) error { return a.demo(o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.python, "python", "python3", "look for PyTorch with this `INTERPRETER`")
	f.StringVarP(&o.output, "output", "o", "memtrace.demo.%p.bin", "name of the trace, a `PATTERN` as for memtrace run")
	f.BoolVarP(&o.force, "force", "f", false, "replace a trace that exists")
	return cmd
}

func (a *app) demo(o demoOptions) error {
	settings, err := a.guestSettings(runOptions{output: o.output, force: o.force})
	if err != nil {
		return err
	}
	guest, err := newDemoGuest(o.python, os.Environ())
	if err != nil {
		return err
	}
	list, err := launch.NewManifest()
	if err != nil {
		return err
	}
	defer list.Remove()
	settings.RunDir = list.Dir
	a.Say("recording %s", guest.words)
	ended, err := launch.Run(guest.argv, settings.Apply(guest.env))
	if err != nil {
		return err
	}
	if ended.Status != 0 {
		return fmt.Errorf("%sthe demo's program ended with status %d: its output is above",
			describeSignal(guest.argv[0], ended), ended.Status)
	}
	traces := a.finishedTraces(list, ended)
	if len(traces) == 0 {
		return errors.New("the demo's program left no trace; see its warnings above, if any")
	}
	for i, path := range traces {
		traces[i] = cli.ShortPath(path)
	}
	flags := cli.QueryFlags{Rows: cli.DefaultRows, Color: "auto"}
	if err := a.report(&flags, &cli.ViewFlags{}, traces, func(string) bool { return false }); err != nil {
		return err
	}
	a.Say("the trace is %s; record a program of yours by: memtrace run -- python3 train.py", strings.Join(traces, ", "))
	return nil
}

// newDemoGuest chooses the program: in PyTorch where the interpreter has one that finds a GPU, else in C on the null
// GPU.
func newDemoGuest(python string, env []string) (demoGuest, error) {
	folder, err := findDemo("demo/train.py")
	if err != nil {
		return demoGuest{}, err
	}
	version, usable := probeTorch(python, env)
	if usable {
		return demoGuest{[]string{python, filepath.Join(folder, "demo/train.py")}, env,
			"a small training run of PyTorch " + version}, nil
	}
	if folder, err = findDemo("demo/train"); err != nil {
		return demoGuest{}, err
	}
	var device launch.NullGPU
	if err := device.Set(launch.DefaultNullGPU); err != nil {
		return demoGuest{}, err
	}
	if env, err = device.Apply(env, "none"); err != nil {
		return demoGuest{}, err
	}
	why := python + " has no PyTorch"
	if version != "" {
		why = "PyTorch " + version + " finds no GPU"
	}
	return demoGuest{[]string{filepath.Join(folder, "demo/train")}, env,
		"a small program in C on the null GPU, since " + why}, nil
}

// probeTorch returns the version of an interpreter's PyTorch; "" without one. The demo does not report errors inside
// it.
func probeTorch(python string, env []string) (version string, usable bool) {
	probe := exec.Command(python, "-c", torchProbe)
	probe.Env = env
	said, err := probe.Output()
	if err != nil {
		return "", false
	}
	fields := bytes.Fields(said)
	if len(fields) < 2 { // imports may have printed before it
		return "", false
	}
	return string(fields[len(fields)-2]), string(fields[len(fields)-1]) == "True"
}

// findDemo returns the folder of the installation that has a file.
func findDemo(name string) (string, error) {
	return launch.FindBeside(name, demoFolders, "build it with 'make demo-guest'")
}
