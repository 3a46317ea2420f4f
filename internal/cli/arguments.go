package cli

import (
	"github.com/spf13/cobra"
)

// NoArguments is for verbs that take none.
func NoArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UsageErrorf("takes no arguments, got %q", args[0])
	}
	return nil
}

// OneTrace is for verbs that take exactly one.
func OneTrace(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return UsageErrorf("name one trace")
	}
	return nil
}

// SomeTraces is for verbs that take one trace or several.
func SomeTraces(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return UsageErrorf("name a trace, or a folder that holds traces")
	}
	return nil
}

// TwoTraces is for verbs that compare two.
func TwoTraces(_ *cobra.Command, args []string) error {
	if len(args) != 2 {
		return UsageErrorf("name two traces: the one before and the one after; got %d", len(args))
	}
	return nil
}
