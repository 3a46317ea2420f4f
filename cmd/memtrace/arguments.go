package main

import "github.com/spf13/cobra"

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("takes no arguments, got %q", args[0])
	}
	return nil
}

func someTraces(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("name a trace, or a folder that holds traces")
	}
	return nil
}

func twoTraces(_ *cobra.Command, args []string) error {
	if len(args) != 2 {
		return usagef("name two traces: the one before and the one after; got %d", len(args))
	}
	return nil
}
