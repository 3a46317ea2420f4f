package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker in a release; a plain go build falls back on what the Go tool recorded.
var version = ""

func versionLine() string {
	return fmt.Sprintf("memtrace %s (%s, %s/%s)", versionName(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func versionName() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, s := range buildSettings(info) {
		if s.Key == "vcs.revision" {
			return "development " + s.Value[:min(len(s.Value), 12)]
		}
	}
	return "development"
}

func buildSettings(info *debug.BuildInfo) []debug.BuildSetting {
	if info == nil {
		return nil
	}
	return info.Settings
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of memtrace and of the trace format",
		Example: "  memtrace version",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.stdout, "%s\ntrace format %d\n", versionLine(), formatVersion)
			return err
		},
	}
}
