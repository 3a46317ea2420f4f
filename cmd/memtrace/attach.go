package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"memtrace/internal/attach"
	"memtrace/internal/cli"
	"memtrace/internal/launch"
)

const attachLong = `Record a program that is already running, from now on, without stopping it. With
--duration the recording ends after that time; otherwise it goes on until the program
ends, or until 'memtrace ctl PID stop'. A process can be recorded once.`

const attachDetails = `If the library is preloaded already (MEMTRACE_START=asleep), recording begins at once.
Otherwise the library is loaded first: by the interpreter if that is CPython 3.14 or
later, else by ptrace, in a thread that waits in a system call. That thread is stopped
for some milliseconds; the others run on.

Blocks that PyTorch holds at that moment are recorded from its own snapshot, to the
byte, as "before recording began": their call stacks are unknown. Other memory from
before is unknown; reports show it as the device's remainder.`

const attachExample = `  memtrace attach 4711
  memtrace attach --duration 30s -o server.bin 4711
  memtrace report server.bin`

func attachCommand(a *app) *cobra.Command {
	var o attach.Options
	cmd := &cobra.Command{
		Use:               "attach [flags] PID",
		Short:             "Record a program that is already running",
		Long:              attachLong,
		Annotations:       map[string]string{cli.DetailsFlag: attachDetails},
		Example:           attachExample,
		Args:              onePID,
		ValidArgsFunction: completePIDs,
		RunE: func(_ *cobra.Command, args []string) error {
			pid, err := parsePID(args[0])
			if err != nil {
				return err
			}
			return a.recorder().Attach(o, pid)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Output, "output", "o", "", "name of the trace, a `PATTERN` as for memtrace run (default "+
		launch.DefaultOutput+")")
	f.BoolVarP(&o.Force, "force", "f", false, "replace a trace that exists")
	f.DurationVarP(&o.Duration, "duration", "d", 0, "stop recording after this `TIME`, such as 30s or 5m")
	f.DurationVar(&o.Timeout, "timeout", 10*time.Second,
		"give up if the library was not loaded within this `TIME`; nothing is changed then")
	f.StringVar(&o.Library, "library", "", "`PATH` of "+launch.LibraryName+
		" as the process sees it, such as in a container")
	f.StringVar(&o.Door, "door", attach.DoorAuto, "`METHOD` to load the library: auto, python or ptrace")
	cli.CompleteFlag(cmd, "door", cli.CompleteValues(attach.DoorAuto, attach.DoorPython, attach.DoorPtrace))
	return cmd
}

func onePID(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.UsageErrorf("name one process by its number")
	}
	return nil
}

func parsePID(text string) (int, error) {
	pid, err := strconv.Atoi(text)
	if err != nil || pid <= 0 {
		return 0, cli.UsageErrorf("%s is not the number of a process", text)
	}
	return pid, nil
}

// completePIDs offers the processes that have a GPU's library loaded.
func completePIDs(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	entries, err := os.ReadDir("/proc")
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list []cobra.Completion
	for _, entry := range entries {
		maps, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "maps"))
		if err != nil || !strings.Contains(string(maps), "/libcuda.so") {
			continue
		}
		name, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "comm"))
		list = append(list, cobra.CompletionWithDesc(entry.Name(), strings.TrimSpace(string(name))))
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}
