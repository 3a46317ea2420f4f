package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"memtrace/internal/cli"
	"memtrace/internal/version"
	"memtrace/trace"
)

func versionLine() string {
	return fmt.Sprintf("memtrace %s (%s, %s/%s)", version.String, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of memtrace and of the trace format",
		Example: "  memtrace version",
		Args:    cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.Stdout, "%s\ntrace format %d\n", versionLine(), trace.FormatVersion)
			return err
		},
	}
}
