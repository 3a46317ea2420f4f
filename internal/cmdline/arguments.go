package cmdline

import (
	"github.com/spf13/cobra"

	"memtrace/internal/usageerr"
)

// NoArguments is for verbs that take none.
func NoArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageerr.Errorf("takes no arguments, got %q", args[0])
	}
	return nil
}

// OneTrace is for verbs that take exactly one.
func OneTrace(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageerr.Errorf("name one trace")
	}
	return nil
}

// SomeTraces is for verbs that take one trace or several.
func SomeTraces(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageerr.Errorf("name a trace, or a folder that holds traces")
	}
	return nil
}

// TwoTraces is for verbs that compare two.
func TwoTraces(_ *cobra.Command, args []string) error {
	if len(args) != 2 {
		return usageerr.Errorf("name two traces: the one before and the one after; got %d", len(args))
	}
	return nil
}
